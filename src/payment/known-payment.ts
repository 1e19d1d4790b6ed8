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
import { inDoubt, PaymentRefused, settlementUnknown } from './refusal.ts';
import { createLooks } from './settle-rows.ts';
import { ALREADY_USED, REVERTED } from './settler.ts';

// Judges a presented payment by its row in the ledger: is it the row's payment, request and buyer; what is it refused
// with; may it be used again? Only its first presenter gets its answer.

// Is it this payment, this request, this buyer?
/**
 * Whether a row holds exactly the presented authorization: contract, six fields and signature. A row from before the
 * hash was stored is compared by its key, amount, recipient and times.
 */
export function isSameAuthorization<S>(payment: Payment, order: Order<S>): boolean {
  if (!isSameKey(payment, order.key)) return false;
  if (payment.authorizationHash) return equal(payment.authorizationHash, order.authorizationHash);
  const { value, to, validAfter, validBefore } = order.authorization;
  const terms = payment.amount === value && payment.validAfter === validAfter && payment.validBefore === validBefore;
  return terms && equal(payment.payTo, to);
}

/** Whether a row's payment was made for the request that is asked for now. */
export function isSameRequest(payment: Payment, order: Pick<Order<never>, 'requestHash'>): boolean {
  return equal(payment.requestHash, order.requestHash);
}

/** Whether a row's transaction moved nothing, or none was sent. Its authorization is valid until it expires. */
export function isReverted({ state, reason }: Payment): boolean {
  return state === 'failed' && reason === REVERTED;
}

/**
 * Whether an authorization whose settlement moved nothing may be used again. It is valid and may be public. So only
 * its first presenter may use it, unchanged, for the same request. Where the row has a payment identifier, that alone
 * shows the first presenter, because others may share its address.
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
 * Whether the presenter is the first one: by its client identity or by the payment identifier. The chain shows neither.
 * Clients may share an identity, and one of them can copy an authorization from the chain. So the identity counts only
 * in the first presentation's protocol: where a challenge's id shows the buyer, no other protocol goes round it.
 */
export function isSameBuyer(payment: Payment, order: Presenter): boolean {
  return isSameIdentifier(payment, order) || (isSameClient(payment, order) && isSameProtocol(payment, order));
}

interface Presenter extends Pick<Order<never>, 'clientHash' | 'identifierHash'> {
  readonly protocol: Payment['protocol'];
}

function isSameClient(payment: Payment, { clientHash }: Presenter): boolean {
  return equal(payment.clientHash, clientHash);
}

/** A row without a protocol was sold over the only one that there was. */
function isSameProtocol(payment: Payment, { protocol }: Presenter): boolean {
  return payment.protocol === null || payment.protocol === protocol;
}

function isSameIdentifier(payment: Payment, order: Presenter): boolean {
  return Boolean(payment.identifierHash && order.identifierHash && equal(payment.identifierHash, order.identifierHash));
}

function isSameKey(a: PaymentKey, b: PaymentKey): boolean {
  const isOnSameChain = a.network === b.network && equal(a.contract, b.contract);
  return isOnSameChain && equal(a.payer, b.payer) && equal(a.nonce, b.nonce);
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

// What a known payment is refused with

/**
 * 409: another authorization or request has used the identifier. Nothing was reserved. `mayHaveMoved`: this
 * authorization was presented before, and its money may have moved or may still move.
 */
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

/**
 * Throws when another payment holds an order's identifier: 409, or 402 where it is a challenge's, which buys one
 * answer. `known`: the row of the order's own payment, as it was read before the holder.
 */
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

/**
 * The 402 of a payment that has bought another request, or whose answer has been delivered often enough. The money is
 * taken. So where the rail cannot read why, the error says `charged: "unknown"`.
 */
export async function usedElsewhere<S>({ rail, payment }: Order<S>, known: Payment): Promise<PaymentRefused> {
  const refused = await inDoubt(async () => rail.refuseUsed?.(payment, known));
  return refused ?? new PaymentRefused(ALREADY_USED);
}

// May it be used again?

/** Authorizations remembered as paid, about 1 MB. The oldest is forgotten, and looked up again when it is presented. */
const MAX_PAID = 10_000;

interface ReuseOptions {
  ledger: Pick<Ledger, 'ruleOut'>;
  clock: Clock;
}

/** What the evidence says of a reverted authorization. `open`: it may be settled again. `paid`: another has sent it. */
type Reuse = <S>(known: Payment, order: Order<S>, asker: Asker) => Promise<'open' | 'paid'>;

/**
 * Decides what a reverted authorization may do when it is presented again. It may be public: a third party may have
 * sent it, or its payer may have used it elsewhere. The evidence is read first:
 * 1. Unused: it may buy again, as a new one.
 * 2. It paid us: its buyer is owed an answer, even after it has expired.
 * 3. Used elsewhere or expired: the row gets that reason, and it is never looked up again. Throws PaymentRefused.
 * 4. Not known now: 503 `settlement_unknown`. A lookup costs several requests, so each authorization has one a second.
 */
export function createReuse({ ledger, clock }: ReuseOptions): Reuse {
  const looks = createLooks(clock);
  const paid = new Map<string, true>();

  return async (known, { payment, authorizationHash, rail }, asker) => {
    const id = bytesToHex(authorizationHash);
    if (paid.has(id)) return 'paid';
    const mayLookUp = (): boolean => {
      const isDue = looks.isDueForBuyer(id);
      if (isDue) looks.note(id, false);
      return isDue;
    };
    const verdict = await rail.review(payment, known, { asker, mayLookUp });
    if (verdict.kind === 'open') return 'open';
    if (verdict.kind === 'unknown') throw settlementUnknown();
    looks.note(id, true);
    if (verdict.kind === 'failed') {
      await ledger.ruleOut(known.id, verdict.reason);
      throw refusedSettlement({ ...known, reason: verdict.reason }, rail);
    }
    setNewest(paid, id, true, MAX_PAID);
    return 'paid';
  };
}
