import type { Payment, PaymentKey } from '../store/ports/sales.ts';
import type { Order } from './order.ts';
import { REVERTED } from './settler.ts';

/**
 * Whether a row is of the very authorization that is presented: contract, six fields and signature. A row from before the hash was stored is
 * compared by its terms.
 */
export function isSameAuthorization<S>(payment: Payment, order: Order<S>): boolean {
  if (!isSameKey(payment, order.key)) return false;
  if (payment.authorizationHash) return equal(payment.authorizationHash, order.authorizationHash);
  const { value, to, validAfter, validBefore } = order.authorization;
  const terms = payment.amount === value && payment.validAfter === validAfter && payment.validBefore === validBefore;
  return terms && equal(payment.payTo, to);
}

/** Whether a row's authorization was spent on the request that is asked for now. */
export function isSameRequest<S>(payment: Payment, order: Order<S>): boolean {
  return equal(payment.requestHash, order.requestHash);
}

/** Whether a row's settlement moved nothing, mined or never sent (REVERTED): its authorization may be public, and is still good until it expires. */
export function isReverted({ state, reason }: Payment): boolean {
  return state === 'failed' && reason === REVERTED;
}

/**
 * Whether an authorization whose settlement moved nothing may be used again. It is still good and may be public, so only its first presenter may
 * present it, and only unchanged.
 */
export function mayTakeOver<S>(known: Payment, order: Order<S>): boolean {
  return (
    isReverted(known) &&
    known.authorizationHash !== null &&
    isSameAuthorization(known, order) &&
    isSameBuyer(known, order)
  );
}

/** Whether the money of this row's authorization has moved or still can: here, or through a third party once a settlement of it has failed. */
export function mayHaveMoved(known: Payment | null): boolean {
  return known !== null && (known.state !== 'failed' || isReverted(known));
}

/** Whether the presenter is the first one: the same client identity, or the same payment identifier. The chain shows neither. */
export function isSameBuyer<S>(payment: Payment, order: Order<S>): boolean {
  if (equal(payment.clientHash, order.clientHash)) return true;
  return Boolean(payment.identifierHash && order.identifierHash && equal(payment.identifierHash, order.identifierHash));
}

function isSameKey(a: PaymentKey, b: PaymentKey): boolean {
  const isOnSameChain = a.network === b.network && equal(a.contract, b.contract);
  return isOnSameChain && equal(a.payer, b.payer) && equal(a.nonce, b.nonce);
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
