import { AppError } from '../errors.ts';
import type { Payment, PaymentKey } from '../store/ports/sales.ts';
import type { Order } from './order.ts';
import { REVERTED } from './settler.ts';

/**
 * Whether a row holds exactly the presented authorization: contract, six fields and signature. A row from before the hash was stored is compared by
 * its key, amount, recipient and times.
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

/**
 * Whether a row failed with REVERTED: its transaction moved nothing, or none was sent. Its authorization may be public and is valid until it expires.
 */
export function isReverted({ state, reason }: Payment): boolean {
  return state === 'failed' && reason === REVERTED;
}

/**
 * Whether an authorization whose settlement moved nothing may be used again. It is still valid and may be public. So only its first presenter may use
 * it, only unchanged, and only for the same request. Where the row has a payment identifier, the identifier alone shows the first presenter, because
 * others may share its address.
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

/** Whether this row's authorization has moved money or still can. After a failed settlement, a third party may still send it. */
export function mayHaveMoved(known: Payment | null): boolean {
  return known !== null && (known.state !== 'failed' || isReverted(known));
}

/**
 * Whether the presenter is the first one: it has the same client identity or the same payment identifier. Neither can be read from the chain. Clients may
 * share an identity, and a third party among them can copy an authorization from the chain. So the identity counts only in the protocol of the first
 * presentation: where a challenge's id shows the buyer, no other protocol goes round it.
 */
export function isSameBuyer(payment: Payment, order: Presenter): boolean {
  return isSameIdentifier(payment, order) || (isSameClient(payment, order) && isSameProtocol(payment, order));
}

/** Who presents a payment, and by which protocol. */
interface Presenter extends Pick<Order<never>, 'clientHash' | 'identifierHash'> {
  readonly protocol: Payment['protocol'];
}

function isSameClient(payment: Payment, { clientHash }: Presenter): boolean {
  return equal(payment.clientHash, clientHash);
}

/** A row from before the protocol was stored was sold over the only one that there was. */
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

/**
 * 409: another authorization or another request has used the identifier. Nothing was reserved for this one. `mayHaveMoved`: this authorization was
 * presented before, and its money may have moved or may still move.
 */
export function identifierConflict(mayHaveMoved: boolean): AppError {
  const detail =
    'this payment identifier belongs to another payment: present that one again, or take a new identifier for this one';
  return new AppError(409, 'payment_identifier_conflict', detail, { charged: mayHaveMoved ? 'unknown' : false });
}
