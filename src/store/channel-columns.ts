import { OPEN } from './payment-columns.ts';
import type { ChannelCharge, ChannelConfig, ChannelState } from './ports/channel-state.ts';
import type { OperationEnd, RefundTerms } from './ports/channels.ts';

/** Conditions in SQL over `@channelId`, the same in both databases. A channel with such a row takes no other sale. */
export const OPEN_SALE = `EXISTS (SELECT 1 FROM usdc_payments WHERE channel_id = @channelId AND state IN ${OPEN})`;
export const OPEN_REFUND = "EXISTS (SELECT 1 FROM channel_operations WHERE channel_id = @channelId AND state = 'open')";

/** Whether a refund of the channel is done since `@pausedSince`; false where that is null. */
export const RECENT_REFUND =
  "EXISTS (SELECT 1 FROM channel_operations WHERE channel_id = @channelId AND kind = 'refund' AND state = 'done' AND ended_at > @pausedSince)";

/**
 * Whether a voucher of the channel may be charged, in SQL over its row: two providers gave its state, and the contract
 * has not refused its charges.
 */
export const IS_SOLD_ON = 'confirmed_block = state_block AND refused_at IS NULL';

/**
 * By how many blocks a noted state may be newer than one that providers confirm now: two minutes on Arc, because a read
 * may end late. One that is further ahead is of no block of this chain, and is replaced.
 */
export const MOST_AHEAD = 240;

/**
 * Which channels the leader reads whatever their buyers do, in SQL over `@head`: those whose state no two providers
 * gave, and those whose last deposit is 20 blocks old and was not looked at since. The chain may have taken it back.
 * The first condition is that of an index (migration 021), so its text must stay.
 */
export const IS_TO_READ = `(confirmed_block IS DISTINCT FROM state_block OR confirmed_block < deposit_block + 20)
     AND (confirmed_block IS DISTINCT FROM state_block OR deposit_block + 20 <= @head)
     AND (balance > 0 OR unclaimed_since IS NOT NULL)`;

/** What of a channel is open, in SQL over `@channelId`. */
export const FIND_OPEN = `SELECT CASE WHEN ${OPEN_SALE} THEN 'deposit' WHEN ${OPEN_REFUND} THEN 'refund' END AS open`;

/**
 * Whether a sale with a deposit may be inserted, in SQL over `@channelId` and `@voucherMax`. True for a sale outside of
 * channels.
 */
export const TAKES_SALE = `(@channelId IS NULL
      OR (EXISTS (SELECT 1 FROM channels WHERE id = @channelId) AND NOT ${OPEN_SALE} AND NOT ${OPEN_REFUND}
          AND NOT EXISTS (SELECT 1 FROM usdc_payments
                           WHERE channel_id = @channelId AND voucher_max = @voucherMax AND state <> 'failed')))`;

/**
 * Deletes unused channels, in SQL over `@beforeMs` and `@limit`. Three conditions on states, because the indexes are
 * over states.
 */
export const PRUNE = `
  DELETE FROM channels WHERE id IN (
    SELECT id FROM channels
     WHERE charged = 0 AND read_at < @beforeMs
       AND NOT EXISTS (SELECT 1 FROM usdc_payments WHERE channel_id = channels.id AND state <> 'failed')
       AND NOT EXISTS (SELECT 1 FROM usdc_payments WHERE channel_id = channels.id AND state = 'failed')
       AND NOT EXISTS (SELECT 1 FROM channel_operations WHERE channel_id = channels.id AND state = 'open')
     ORDER BY read_at LIMIT @limit)`;

/**
 * The values of the terms under which a refund begins: null for an operation that is none, and for a term that is not
 * given.
 */
export const refundValues = (terms: RefundTerms | undefined) => ({
  charged: terms?.charged ?? null,
  pausedSince: terms?.pausedSince ?? null,
});

/** The values of a sale's part in a channel: all null outside of channels. */
export function voucherValues(channel: ChannelCharge | null | undefined) {
  return {
    channelId: channel?.channelId ?? null,
    voucherMax: channel?.max ?? null,
    voucherSignature: channel?.signature ?? null,
  };
}

/** The values of a channel's row, from what the chain shows of it at `now`. */
export function channelValues(
  channel: ChannelConfig & { readonly id: Uint8Array; readonly network: string },
  state: ChannelState,
  now: number,
) {
  const { id, network, payer, payerAuthorizer, receiver, receiverAuthorizer, token, withdrawDelay, salt } = channel;
  const config = { id, network, payer, payerAuthorizer, receiver, receiverAuthorizer, token, withdrawDelay, salt };
  return { ...config, ...state, now };
}

/** The values of an operation's end. An amount or transaction of null leaves the column as it is. */
export function endValues(id: string, end: OperationEnd) {
  const { state, endedAt } = end;
  return end.state === 'done'
    ? { id, state, endedAt, amount: end.amount, transaction: end.transaction, reason: null }
    : { id, state, endedAt, amount: null, transaction: null, reason: end.reason };
}
