import type { PaymentChange } from './ports/sales.ts';

/** The states that are open, in SQL: such a payment may still end in a transfer, so it holds part of the payer's balance. */
export const OPEN = "('reserved', 'settling', 'unknown')";

/** The column of each thing that a move may change, the same in both databases. */
export const CHANGE_COLUMNS: Record<keyof PaymentChange, string> = {
  bootId: 'boot_id',
  signature: 'signature',
  checkedBlock: 'checked_block',
  payerHasCode: 'payer_has_code',
  charged: 'charged',
  transaction: 'transaction_hash',
  block: 'block',
  reason: 'reason',
  settlingAt: 'settling_at',
  endedAt: 'ended_at',
};
