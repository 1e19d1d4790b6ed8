import type { PaymentRequirements } from '@x402/core/types';
import { AppError } from '../errors.ts';
import type { Clock } from '../lib/clock.ts';
import { bytesToHex } from '../lib/hex.ts';
import { setNewest } from '../lib/memory.ts';
import type { Payment, PaymentKey } from '../store/ports/payments.ts';
import type { Order } from './call.ts';
import type { Ledger } from './ledger.ts';
import type { Asker } from './rail.ts';
import { refusedSettlement } from './receipt.ts';
import { chargedUnknown, PaymentRefused, settlementUnknown } from './refusal.ts';
import { createLookupSchedule } from './settle-rows.ts';
import { ALREADY_USED, REVERTED } from './settler.ts';

// Judges a presented payment by its row in the ledger: is it the row's payment, request and buyer; what is it refused
// with; may it be used again? Only its first presenter gets its answer.

/** Whether a row holds exactly this authorization. Rows older than the hash are compared by key and terms. */
export function isSameAuthorization<S>(payment: Payment, order: Order<S>): boolean {
  if (!isSameKey(payment, order.key)) return false;
  if (payment.authorizationHash) return equal(payment.authorizationHash, order.authorizationHash);
  const { value, to, validAfter, validBefore } = order.authorization;
  const terms = payment.amount === value && payment.validAfter === validAfter && payment.validBefore === validBefore;
  return terms && equal(payment.payTo, to);
}

export function isSameRequest(payment: Payment, order: Pick<Order<never>, 'requestHash'>): boolean {
  return equal(payment.requestHash, order.requestHash);
}

/** Whether a row's transaction moved nothing, or none was sent. Its authorization is valid until it expires. */
export function isReverted({ state, reason }: Payment): boolean {
  return state === 'failed' && reason === REVERTED;
}

/**
 * Whether an authorization that moved nothing may be used again. It may be public, so only its first presenter may, for
 * the same request. A row's identifier alone shows that presenter: others may share the address.
 */
export function mayReuse<S>(known: Payment, order: Order<S>): boolean {
  return (
    isReverted(known) &&
    known.authorizationHash !== null &&
    isSameAuthorization(known, order) &&
    isSameRequest(known, order) &&
    (known.identifierHash ? isSameIdentifier(known, order) : isSameBuyer(known, order))
  );
}

/** Whether a row's authorization has moved money or still can. After it reverted, a third party may still send it. */
export function mayHaveMoved(known: Payment | null): boolean {
  return known !== null && (known.state !== 'failed' || isReverted(known));
}

/**
 * Whether this is the first presenter, by identity or identifier; the chain shows neither. Clients may share an
 * identity, so it counts in the first protocol only: no other one may go round a challenge's id.
 */
export function isSameBuyer(payment: Payment, order: Presented): boolean {
  return isSameIdentifier(payment, order) || (isSameClient(payment, order) && isSameProtocol(payment, order));
}

interface Presented extends Pick<Order<never>, 'clientHash' | 'identifierHash'> {
  readonly protocol: Payment['protocol'];
}

function isSameClient(payment: Payment, { clientHash }: Presented): boolean {
  return equal(payment.clientHash, clientHash);
}

/** A row without a protocol was sold over the only one that there was. */
function isSameProtocol(payment: Payment, { protocol }: Presented): boolean {
  return payment.protocol === null || payment.protocol === protocol;
}

function isSameIdentifier(payment: Payment, order: Presented): boolean {
  return Boolean(payment.identifierHash && order.identifierHash && equal(payment.identifierHash, order.identifierHash));
}

function isSameKey(a: PaymentKey, b: PaymentKey): boolean {
  const isOnSameChain = a.network === b.network && equal(a.contract, b.contract);
  return isOnSameChain && equal(a.payer, b.payer) && equal(a.nonce, b.nonce);
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

/** 409: another payment holds the identifier; nothing was reserved. `mayHaveMoved`: the money of this payment. */
export function identifierConflict(mayHaveMoved: boolean): AppError {
  const detail =
    'this payment identifier belongs to another payment: present that one again, or take a new identifier for this one';
  return new AppError(409, 'payment_identifier_conflict', detail, { charged: mayHaveMoved ? 'unknown' : false });
}

/** 409: a payment that has paid is presented for a call with other terms. It still buys the call it was made for. */
export function checkPaidFor<S>({ authorization }: Order<S>, requirement: PaymentRequirements): void {
  // `accepted` is only the client's claim. What the client signed was checked when the payment was first taken.
  if (authorization.value === BigInt(requirement.amount)) return;
  const detail = 'this payment was taken for a call with other terms: present it for a call with the same price';
  throw new AppError(409, 'payment_of_other_terms', detail, { charged: 'unknown' });
}

/** Throws when another payment holds an order's identifier: 409, or 402 for a challenge's. `known`: the order's row. */
export function refuseOtherHolder<S>(holder: Payment | null, order: Order<S>, known: Payment | null): void {
  if (!holder || (isSameAuthorization(holder, order) && isSameRequest(holder, order))) return;
  const own = isSameAuthorization(holder, order) ? holder : known;
  throw order.isSingleUse ? new PaymentRefused(ALREADY_USED) : identifierConflict(mayHaveMoved(own));
}

/** 409 while the first presentation is being served, because that one may take the money at any moment. */
export function refuseInFlight(known: Payment): void {
  if (known.state !== 'reserved' && known.state !== 'settling') return;
  const detail = 'this payment is being served on another connection; present it again to get the answer';
  throw new AppError(409, 'payment_in_flight', detail, { charged: 'unknown', retryAfterSeconds: 1 });
}

/** 402: used up, or made for another request. It was paid, so an unread reason becomes `charged: "unknown"`. */
export async function usedElsewhere<S>({ rail, payment }: Order<S>, known: Payment): Promise<PaymentRefused> {
  const refused = await chargedUnknown(async () => rail.refuseUsed?.(payment, known));
  return refused ?? new PaymentRefused(ALREADY_USED);
}

/** Authorizations remembered as paid, about 1 MB. The oldest is forgotten, and looked up again when it is presented. */
const MAX_PAID = 10_000;

interface ReuseOptions {
  ledger: Pick<Ledger, 'ruleOut'>;
  clock: Clock;
}

/** What the evidence says of a reverted authorization. `open`: it may be settled again. `paid`: another has sent it. */
type Reuse = <S>(known: Payment, order: Order<S>, asker: Asker) => Promise<'open' | 'paid'>;

/**
 * What a reverted authorization may do now; a third party or its payer may have used it. Unused: it may buy again. It
 * paid us: its buyer is owed an answer, even if expired. Used elsewhere or expired: the row gets that reason; throws
 * PaymentRefused. Not known: 503 `settlement_unknown`; one lookup a second.
 */
export function createReuse({ ledger, clock }: ReuseOptions): Reuse {
  const schedule = createLookupSchedule(clock);
  const paid = new Map<string, true>();

  return async (known, { payment, authorizationHash, rail }, asker) => {
    const id = bytesToHex(authorizationHash);
    if (paid.has(id)) return 'paid';
    const mayLookUp = (): boolean => {
      const isDue = schedule.isDueForBuyer(id);
      if (isDue) schedule.note(id, false);
      return isDue;
    };
    const verdict = await rail.review(payment, known, { asker, mayLookUp });
    if (verdict.kind === 'open') return 'open';
    if (verdict.kind === 'unknown') throw settlementUnknown();
    schedule.note(id, true);
    if (verdict.kind === 'failed') {
      await ledger.ruleOut(known.id, verdict.reason);
      throw refusedSettlement({ ...known, reason: verdict.reason }, rail);
    }
    setNewest(paid, id, true, MAX_PAID);
    return 'paid';
  };
}
