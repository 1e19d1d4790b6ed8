import type { Channel, ChannelOperation, OperationKind } from './ports/channels.ts';
import type { ChannelAfter, PaymentChannel } from './ports/payments.ts';

/** A whole number: a bigint from SQLite; from PostgreSQL a bigint where it is money, else a number. */
type Whole = bigint | number;

/** A row of `channels`, as both databases give it. */
export interface ChannelRow {
  id: Uint8Array;
  network: string;
  payer: Uint8Array;
  payer_authorizer: Uint8Array;
  receiver: Uint8Array;
  receiver_authorizer: Uint8Array;
  token: Uint8Array;
  withdraw_delay: Whole;
  salt: Uint8Array;
  charged: Whole;
  written_off: Whole;
  signature: Uint8Array | null;
  balance: Whole;
  total_claimed: Whole;
  withdraw_amount: Whole;
  withdraw_at: Whole;
  refund_nonce: Whole;
  state_block: Whole;
  confirmed_block: Whole | null;
  refused_at: Whole | null;
  read_at: Whole;
  used_at: Whole;
  unclaimed_since: Whole | null;
}

/** A row of `channel_operations`, as both databases give it. */
export interface OperationRow {
  id: string;
  network: string;
  kind: OperationKind;
  channel_id: Uint8Array | null;
  amount: Whole;
  calldata: Uint8Array | null;
  transaction_hash: Uint8Array | null;
  state: ChannelOperation['state'];
  reason: string | null;
  created_at: Whole;
  ended_at: Whole | null;
}

/** The columns of a payment that say which voucher pays it. */
export interface VoucherColumns {
  channel_id: Uint8Array | null;
  voucher_max: Whole | null;
  channel_after: string | null;
}

/** The row as the port's type. */
export function channelFromRow(row: ChannelRow): Channel {
  return {
    id: row.id,
    network: row.network,
    payer: row.payer,
    payerAuthorizer: row.payer_authorizer,
    receiver: row.receiver,
    receiverAuthorizer: row.receiver_authorizer,
    token: row.token,
    withdrawDelay: Number(row.withdraw_delay),
    salt: row.salt,
    charged: BigInt(row.charged),
    writtenOff: BigInt(row.written_off),
    signature: row.signature,
    state: {
      balance: BigInt(row.balance),
      totalClaimed: BigInt(row.total_claimed),
      withdrawAmount: BigInt(row.withdraw_amount),
      withdrawAt: Number(row.withdraw_at),
      refundNonce: BigInt(row.refund_nonce),
      block: Number(row.state_block),
    },
    isConfirmed: row.confirmed_block !== null && Number(row.confirmed_block) === Number(row.state_block),
    claimRefusedAt: row.refused_at === null ? null : Number(row.refused_at),
    readAt: Number(row.read_at),
    usedAt: Number(row.used_at),
    unclaimedSince: row.unclaimed_since === null ? null : Number(row.unclaimed_since),
  };
}

/** The row as the port's type. */
export function operationFromRow(row: OperationRow): ChannelOperation {
  return {
    id: row.id,
    network: row.network,
    kind: row.kind,
    channelId: row.channel_id,
    amount: BigInt(row.amount),
    calldata: row.calldata,
    transaction: row.transaction_hash,
    state: row.state,
    reason: row.reason,
    createdAt: Number(row.created_at),
    endedAt: row.ended_at === null ? null : Number(row.ended_at),
  };
}

/** The voucher that pays a sale. Null for a payment outside of channels. */
export function paymentChannel({ channel_id, voucher_max, channel_after }: VoucherColumns): PaymentChannel | null {
  if (channel_id === null || voucher_max === null) return null;
  return {
    channelId: channel_id,
    max: BigInt(voucher_max),
    after: channel_after === null ? null : parseAfter(channel_after),
  };
}

/**
 * Reads a snapshot that the database made by `AFTER`. Amounts are decimal text in it, because JSON's numbers are not
 * exact.
 */
export function parseAfter(json: string): ChannelAfter {
  const { balance, totalClaimed, withdrawAmount, withdrawAt, refundNonce } = JSON.parse(json) as {
    [Name in keyof ChannelAfter]: ChannelAfter[Name] extends bigint ? string : number;
  };
  return {
    balance: BigInt(balance),
    totalClaimed: BigInt(totalClaimed),
    withdrawAmount: BigInt(withdrawAmount),
    withdrawAt,
    refundNonce: BigInt(refundNonce),
  };
}
