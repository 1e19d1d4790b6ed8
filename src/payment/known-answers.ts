import type { PaymentRequirements } from '@x402/core/types';
import { AppError } from '../errors.ts';
import type { Payment } from '../store/ports/sales.ts';
import { inDoubt } from './doubt.ts';
import { identifierConflict, isSameAuthorization, isSameRequest, mayHaveMoved } from './known-payment.ts';
import type { Order } from './order.ts';
import { PaymentRefused } from './refusal.ts';
import { ALREADY_USED } from './settler.ts';

/** Throws 409 when a payment that has already paid is presented for a call with other terms. It still buys the call that it was made for. */
export function checkPaidFor<S>({ authorization }: Order<S>, requirement: PaymentRequirements): void {
  // `accepted` is only the client's claim, so it is not compared. What the client signed was checked when the payment was first taken.
  if (authorization.value === BigInt(requirement.amount)) return;
  const detail = 'this payment was taken for a call with other terms: present it for a call with the same price';
  throw new AppError(409, 'payment_of_other_terms', detail, { charged: 'unknown' });
}

/**
 * Throws when the payment that holds an order's identifier is another payment: 409, or 402 where the identifier is a challenge's, which buys one answer.
 * `known`: the row of the order's own payment, as it was read before the holder.
 */
export function refuseOtherHolder<S>(holder: Payment | null, order: Order<S>, known: Payment | null): void {
  if (!holder || (isSameAuthorization(holder, order) && isSameRequest(holder, order))) return;
  const own = isSameAuthorization(holder, order) ? holder : known;
  throw order.isSingleUse ? new PaymentRefused(ALREADY_USED) : identifierConflict(mayHaveMoved(own));
}

/** Throws 409 while the first presentation is being served, because that one may take the money at any moment. */
export function refuseInFlight(known: Payment): void {
  if (known.state !== 'reserved' && known.state !== 'settling') return;
  const detail = 'this payment is being served on another connection; present it again to get the answer';
  throw new AppError(409, 'payment_in_flight', detail, { charged: 'unknown', retryAfterSeconds: 1 });
}

/**
 * The 402 of a payment that has bought another request, or whose answer has been delivered often enough. The money is taken. So where the rail cannot
 * read why, the error says `charged: "unknown"`.
 */
export async function usedElsewhere<S>({ rail, payment }: Order<S>, known: Payment): Promise<PaymentRefused> {
  const refused = await inDoubt(async () => rail.refuseUsed?.(payment, known));
  return refused ?? new PaymentRefused(ALREADY_USED);
}
