import type { Claim, InvoiceRecord } from './ports/lightning.ts';

/** A row of `lightning_invoices` as SQLite gives it. */
export interface InvoiceRow {
  network: string;
  payment_hash: Uint8Array;
  request_hash: Uint8Array;
  amount_msat: string;
  pay_to: Uint8Array;
  issued_at: number;
  forget_at: number;
}

/** A row of `lightning_claims` as SQLite gives it; without the lease, which only the store reads. */
export interface ClaimRow {
  network: string;
  payment_hash: Uint8Array;
  pay_to: Uint8Array;
  amount_msat: string;
  claimed_at: number;
  request_hash: Uint8Array | null;
  state: 'claimed' | 'delivered' | null;
  redeem_until: number | null;
  delivered_at: number | null;
  answer: 'none' | 'kept' | 'gone' | null;
  protocol: string | null;
}

/** The row as the port's type. */
export function invoiceFromRow(row: InvoiceRow): InvoiceRecord {
  return {
    network: row.network,
    paymentHash: row.payment_hash,
    requestHash: row.request_hash,
    amountMsat: BigInt(row.amount_msat),
    payTo: row.pay_to,
    issuedAt: row.issued_at,
    forgetAt: row.forget_at,
  };
}

/** The row as the port's type; a claim that grants nothing has a null `grant`. */
export function claimFromRow(row: ClaimRow): Claim {
  return {
    network: row.network,
    paymentHash: row.payment_hash,
    payTo: row.pay_to,
    amountMsat: BigInt(row.amount_msat),
    claimedAt: row.claimed_at,
    grant: grantFromRow(row),
  };
}

function grantFromRow(row: ClaimRow): Claim['grant'] {
  if (row.request_hash === null || row.state === null || row.redeem_until === null) return null;
  return {
    requestHash: row.request_hash,
    state: row.state,
    redeemUntil: row.redeem_until,
    deliveredAt: row.delivered_at,
    answered: row.answer === 'kept',
    protocol: row.protocol,
  };
}
