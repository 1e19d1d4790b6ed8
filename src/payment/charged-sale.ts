import type { VoucherSale } from '../store/ports/channels.ts';
import type { ChannelAfter, Payment } from '../store/ports/sales.ts';

/**
 * The payment of a sale that a voucher has just paid, as the ledger's row shows it; null where it was not charged (no `after`). A read of the row would
 * cost a tenth of the sale's ledger time.
 */
export function chargedSale(sale: VoucherSale, after: ChannelAfter | null): Payment | null {
  if (!after) return null;
  const { id, network, contract, payer, nonce, bootId, amount, payTo, validAfter, validBefore } = sale;
  const { authorizationHash, requestHash, price, clientHash, identifierHash, reservedAt, channel, protocol } = sale;
  return {
    ...{ id, network, contract, payer, nonce, state: 'settled', bootId, amount, payTo, validAfter, validBefore },
    ...{ signature: null, authorizationHash, requestHash, price, charged: price, payerHasCode: null, clientHash },
    ...{ identifierHash, checkedBlock: null, transaction: null, block: null, reason: null, reservedAt },
    ...{ endedAt: reservedAt, deliveries: 0, deliveredAt: null, calldata: null, protocol },
    channel: { channelId: channel.channelId, max: channel.max, after },
  };
}
