import type { PaymentChange, PaymentState } from './ports/payments.ts';

/**
 * The open states, in SQL. A payment in one of them may still end in a transfer, so it counts against the payer's
 * balance.
 */
export const OPEN = "('reserved', 'settling', 'unknown')";

/** The column of each field that a move may change, the same in both databases. */
export const CHANGE_COLUMNS: Record<keyof PaymentChange, string> = {
  bootId: 'boot_id',
  signature: 'signature',
  calldata: 'calldata',
  checkedBlock: 'checked_block',
  payerHasCode: 'payer_has_code',
  charged: 'charged',
  transaction: 'transaction_hash',
  block: 'block',
  reason: 'reason',
  settlingAt: 'settling_at',
  endedAt: 'ended_at',
};

/** The fields that a move sets. A payment's end wipes the calldata in any case. */
export function changedFields(change: PaymentChange, to: PaymentState): (keyof PaymentChange)[] {
  const isEnd = to === 'settled' || to === 'failed';
  const fields = Object.keys(change) as (keyof PaymentChange)[];
  return fields.filter((field) => change[field] !== undefined && !(isEnd && field === 'calldata'));
}

/**
 * What a payment earns, in SQL: at a sale in a channel what was charged, or the price before that. The amount of such a
 * sale may be a deposit, and the rest of a deposit stays the payer's.
 */
export const EARNED = 'CASE WHEN channel_id IS NULL THEN amount ELSE coalesce(charged, price) END';
