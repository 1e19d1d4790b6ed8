import type { Payment, PaymentState } from '../ports/sales.ts';

/** A row of `usdc_payments` as SQLite gives it, with amounts as bigint. */
export interface PaymentRow {
  id: string;
  network: string;
  contract: Uint8Array;
  payer: Uint8Array;
  nonce: Uint8Array;
  state: PaymentState;
  boot_id: string;
  amount: number;
  pay_to: Uint8Array;
  valid_after: string;
  valid_before: string;
  signature: Uint8Array | null;
  authorization_hash: Uint8Array | null;
  request_hash: Uint8Array;
  price: number | null;
  charged: number | null;
  payer_has_code: number | null;
  client_hash: Uint8Array;
  identifier_hash: Uint8Array | null;
  checked_block: number | null;
  transaction_hash: Uint8Array | null;
  block: number | null;
  reason: string | null;
  reserved_at: number;
  ended_at: number | null;
  deliveries: number;
  delivered_at: number | null;
}

/** The row as the port's type. */
export function paymentFromRow(row: PaymentRow): Payment {
  return {
    id: row.id,
    network: row.network,
    contract: row.contract,
    payer: row.payer,
    nonce: row.nonce,
    state: row.state,
    bootId: row.boot_id,
    amount: BigInt(row.amount),
    payTo: row.pay_to,
    validAfter: BigInt(row.valid_after),
    validBefore: BigInt(row.valid_before),
    signature: row.signature,
    authorizationHash: row.authorization_hash,
    requestHash: row.request_hash,
    price: row.price === null ? null : BigInt(row.price),
    charged: row.charged === null ? null : BigInt(row.charged),
    payerHasCode: row.payer_has_code === null ? null : row.payer_has_code === 1,
    clientHash: row.client_hash,
    identifierHash: row.identifier_hash,
    checkedBlock: row.checked_block,
    transaction: row.transaction_hash,
    block: row.block,
    reason: row.reason,
    reservedAt: row.reserved_at,
    endedAt: row.ended_at,
    deliveries: row.deliveries,
    deliveredAt: row.delivered_at,
  };
}
