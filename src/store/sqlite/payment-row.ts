import { paymentChannel, type VoucherColumns } from '../channel-row.ts';
import type { Payment, PaymentState } from '../ports/payments.ts';

/** A row of `usdc_payments` as SQLite gives it, with whole numbers as bigint. */
export interface PaymentRow extends VoucherColumns {
  id: string;
  network: string;
  contract: Uint8Array;
  payer: Uint8Array;
  nonce: Uint8Array;
  state: PaymentState;
  boot_id: string;
  amount: bigint;
  pay_to: Uint8Array;
  valid_after: string;
  valid_before: string;
  signature: Uint8Array | null;
  authorization_hash: Uint8Array | null;
  request_hash: Uint8Array;
  price: bigint | null;
  charged: bigint | null;
  payer_has_code: bigint | null;
  client_hash: Uint8Array;
  identifier_hash: Uint8Array | null;
  checked_block: bigint | null;
  transaction_hash: Uint8Array | null;
  block: bigint | null;
  reason: string | null;
  reserved_at: bigint;
  ended_at: bigint | null;
  deliveries: bigint;
  delivered_at: bigint | null;
  calldata: Uint8Array | null;
  protocol: string | null;
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
    amount: row.amount,
    payTo: row.pay_to,
    validAfter: BigInt(row.valid_after),
    validBefore: BigInt(row.valid_before),
    signature: row.signature,
    authorizationHash: row.authorization_hash,
    requestHash: row.request_hash,
    price: row.price,
    charged: row.charged,
    payerHasCode: row.payer_has_code === null ? null : row.payer_has_code === 1n,
    clientHash: row.client_hash,
    identifierHash: row.identifier_hash,
    checkedBlock: numberOf(row.checked_block),
    transaction: row.transaction_hash,
    block: numberOf(row.block),
    reason: row.reason,
    reservedAt: Number(row.reserved_at),
    endedAt: numberOf(row.ended_at),
    deliveries: Number(row.deliveries),
    deliveredAt: numberOf(row.delivered_at),
    channel: paymentChannel(row),
    calldata: row.calldata,
    protocol: row.protocol,
  };
}

const numberOf = (value: bigint | null): number | null => (value === null ? null : Number(value));
