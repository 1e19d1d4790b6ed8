import { AppError } from '../errors.ts';
import type { Clock } from '../lib/clock.ts';
import { bytesToHex } from '../lib/hex.ts';
import { boundedMap } from '../lib/limits/count.ts';
import type { Payment, PaymentKey } from '../store/ports/payments.ts';
import type { Ledger } from './ledger.ts';
import type { Sale, SignedPayment } from './rail.ts';
import { refusedSettlement } from './receipt.ts';
import { PaymentRefused, settlementUnknown } from './refusal.ts';
import { createLookupSchedule } from './settle-rows.ts';
import { ALREADY_USED, REVERTED } from './settler.ts';

// Judges a presented payment by its row in the ledger: is it the row's payment, request and buyer; what is it refused
// with; may it be used again? Only its first presenter gets its answer.

/** What shows that a client is the buyer of an earlier sale. */
interface Buyer {
  readonly clientHash: Uint8Array;
  readonly identifier: Sale['identifier'];
  readonly credential: { readonly protocol: Payment['protocol'] };
}

/** What a row is compared with: a payment, the request that it is presented for, and who presents it. */
interface Presented extends Buyer {
  readonly key: PaymentKey;
  readonly requestHash: Uint8Array;
  readonly payment: Pick<SignedPayment, 'authorization' | 'authorizationHash'>;
}

/** Whether a row holds exactly this authorization. Rows older than the hash are compared by key and terms. */
export function isSameAuthorization(row: Payment, { key, payment }: Pick<Presented, 'key' | 'payment'>): boolean {
  if (!isSameKey(row, key)) return false;
  if (row.authorizationHash) return equal(row.authorizationHash, payment.authorizationHash);
  const { value, to, validAfter, validBefore } = payment.authorization;
  const terms = row.amount === value && row.validAfter === validAfter && row.validBefore === validBefore;
  return terms && equal(row.payTo, to);
}

export function isSameRequest(row: Payment, { requestHash }: Pick<Presented, 'requestHash'>): boolean {
  return equal(row.requestHash, requestHash);
}

/** Whether a row's transaction moved nothing, or none was sent. Its authorization is valid until it expires. */
export function isReverted({ state, reason }: Payment): boolean {
  return state === 'failed' && reason === REVERTED;
}

/**
 * Whether an authorization that moved nothing may be used again. It may be public, so only its first presenter may, for
 * the same request. A row's identifier alone shows that presenter: others may share the address.
 */
export function mayReuse(known: Payment, sale: Presented): boolean {
  return (
    isReverted(known) &&
    known.authorizationHash !== null &&
    isSameAuthorization(known, sale) &&
    isSameRequest(known, sale) &&
    (known.identifierHash ? isSameIdentifier(known, sale) : isSameBuyer(known, sale))
  );
}

/** Whether a row's authorization has moved money or still can. After it reverted, a third party may still send it. */
function mayHaveMoved(known: Payment | null): boolean {
  return known !== null && (known.state !== 'failed' || isReverted(known));
}

/**
 * Whether this is the first presenter, by identity or identifier; the chain shows neither. Clients may share an
 * identity, so it counts in the first protocol only: no other one may go round a challenge's id.
 */
export function isSameBuyer(row: Payment, buyer: Buyer): boolean {
  return isSameIdentifier(row, buyer) || (equal(row.clientHash, buyer.clientHash) && isSameProtocol(row, buyer));
}

/** A row without a protocol was sold over the only one that there was. */
function isSameProtocol(row: Payment, { credential }: Buyer): boolean {
  return row.protocol === null || row.protocol === credential.protocol;
}

function isSameIdentifier(row: Payment, { identifier }: Buyer): boolean {
  return Boolean(row.identifierHash && identifier && equal(row.identifierHash, identifier.hash));
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
export function checkPaidFor({ payment, requirement }: Sale): void {
  // `accepted` is only the client's claim. What the client signed was checked when the payment was first taken.
  if (payment.authorization.value === BigInt(requirement.amount)) return;
  const detail = 'this payment was taken for a call with other terms: present it for a call with the same price';
  throw new AppError(409, 'payment_of_other_terms', detail, { charged: 'unknown' });
}

/** Throws when another payment holds a sale's identifier: 409, or 402 for a challenge's. `known`: the sale's row. */
export function refuseOtherHolder(holder: Payment | null, sale: Presented, known: Payment | null): void {
  if (!holder || (isSameAuthorization(holder, sale) && isSameRequest(holder, sale))) return;
  const own = isSameAuthorization(holder, sale) ? holder : known;
  throw sale.identifier?.isSingleUse ? new PaymentRefused(ALREADY_USED) : identifierConflict(mayHaveMoved(own));
}

/** 409 while the first presentation is being served, because that one may take the money at any moment. */
export function refuseInFlight(known: Payment): void {
  if (known.state !== 'reserved' && known.state !== 'settling') return;
  const detail = 'this payment is being served on another connection; present it again to get the answer';
  throw new AppError(409, 'payment_in_flight', detail, { charged: 'unknown', retryAfterSeconds: 1 });
}

/** 402: the payment has bought another request, or its answer was delivered as often as it may be. It was paid. */
export class UsedElsewhere extends PaymentRefused {
  constructor() {
    super(ALREADY_USED);
  }
}

/** Authorizations remembered as paid, about 1 MB. The oldest is forgotten, and looked up again when it is presented. */
const MAX_PAID = 10_000;

/** What the evidence says of a reverted authorization. `open`: it may be settled again. `paid`: another has sent it. */
export type Reuse = (sale: Sale, known: Payment) => Promise<'open' | 'paid'>;

/**
 * What a reverted authorization may do now; a third party or its payer may have used it. Unused: it may buy again. It
 * paid us: its buyer is owed an answer, even if expired. Used elsewhere or expired: the row gets that reason; throws
 * PaymentRefused. Not known: 503 `settlement_unknown`; one lookup a second.
 */
export function createReuse(clock: Clock, ledger: Pick<Ledger, 'ruleOut'>): Reuse {
  const schedule = createLookupSchedule(clock);
  const paid = boundedMap<string, true>(MAX_PAID);

  return async (sale, known) => {
    const id = bytesToHex(sale.payment.authorizationHash);
    if (paid.has(id)) return 'paid';
    const mayLookUp = (): boolean => {
      const isDue = schedule.isDueForBuyer(id);
      if (isDue) schedule.note(id, false);
      return isDue;
    };
    const verdict = await sale.scheme.review(sale, known, mayLookUp);
    if (verdict.kind === 'open') return 'open';
    if (verdict.kind === 'unknown') throw settlementUnknown();
    schedule.note(id, true);
    if (verdict.kind === 'failed') {
      await ledger.ruleOut(known.id, verdict.reason);
      throw refusedSettlement({ ...known, reason: verdict.reason });
    }
    paid.set(id, true);
    return 'paid';
  };
}
