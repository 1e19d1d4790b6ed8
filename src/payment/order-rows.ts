import { listedPath } from '../catalogue/paths.ts';
import type { NewPayment } from '../store/ports/sales.ts';
import type { Order } from './order.ts';
import type { Verified } from './rail.ts';
import type { Intent } from './settler.ts';

/** The row that reserves an order's authorization for its request. */
export function reservationOf(order: Order<never>): Omit<NewPayment, 'id' | 'bootId' | 'reservedAt'> {
  const { endpoint, payment, authorization, authorizationHash, key, price, protocol } = order;
  const { value: amount, to: payTo, validAfter, validBefore } = authorization;
  const { requestHash, clientHash, identifierHash } = order;
  return {
    ...{ ...key, amount, payTo, validAfter, validBefore, authorizationHash, price },
    ...{ requestHash, clientHash, identifierHash, route: listedPath(endpoint), protocol },
    channel: payment.channel ?? null,
  };
}

/** What settles an order that is served for the first time. */
export function intentOf(
  id: string,
  { authorization, payment }: Order<never>,
  { checkedBlock, hasCode }: Verified,
): Intent {
  return { id, authorization, call: payment.call ?? null, fromBlock: checkedBlock, broadcast: false, hasCode };
}
