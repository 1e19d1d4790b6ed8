import type { Payment } from '../../../store/ports/sales.ts';
import { isSameBuyer } from '../../known-payment.ts';
import { hashClient } from '../../ledger.ts';
import type { Presenter } from '../../rail.ts';

/** Whether a sale was made to the client that asks now: it has the same address, or the same payment identifier. Neither can be read from the chain. */
export function isSaleOf(sale: Payment, { identity, identifierHash }: Presenter): boolean {
  // Channels are sold by one protocol.
  const { protocol } = sale;
  return isSameBuyer(sale, { clientHash: hashClient(sale.nonce, identity), identifierHash, protocol });
}
