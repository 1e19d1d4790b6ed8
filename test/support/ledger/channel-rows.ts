import type { ChannelConfig, ChannelState } from '../../../src/store/ports/channel-state.ts';
import type { NewOperation, VoucherSale } from '../../../src/store/ports/channels.ts';
import type { NewPayment } from '../../../src/store/ports/payments.ts';
import type { LedgerStores } from '../../../src/store/ports/stores.ts';
import { hash32, reservation } from './ledger-rows.ts';

export const NETWORK = 'eip155:5042';
/** When the first state of a channel is noted, in tests. */
export const SEEN_AT = 1_800_000_000_000;

/** A channel's terms by name; the name gives its id. */
export function channelTerms(name: string): ChannelConfig & { id: Uint8Array; network: string } {
  return {
    id: hash32(`channel ${name}`),
    network: NETWORK,
    payer: Buffer.alloc(20, 9),
    payerAuthorizer: Buffer.alloc(20, 0),
    receiver: Buffer.alloc(20, 1),
    receiverAuthorizer: Buffer.alloc(20, 2),
    token: Buffer.alloc(20, 0x36),
    withdrawDelay: 86_400,
    salt: hash32(`salt ${name}`),
  };
}

/** What the chain shows of a channel with a balance of 10,000 at block 100. */
export function channelState(more: Partial<ChannelState> = {}): ChannelState {
  return {
    balance: 10_000n,
    totalClaimed: 0n,
    withdrawAmount: 0n,
    withdrawAt: 0,
    refundNonce: 0n,
    block: 100,
    ...more,
  };
}

export const voucherSignature = (name: string, max: bigint): Uint8Array => Buffer.alloc(65, hash32(`${name} ${max}`));

/** A sale of a channel's voucher. Its price is 100 unless `more` has another. */
export function voucherSale(id: string, name: string, max: bigint, more: Partial<NewPayment> = {}): VoucherSale {
  const channel = { channelId: channelTerms(name).id, max, signature: voucherSignature(name, max) };
  return { ...reservation(id, `voucher ${name} ${max}`, { price: 100n, amount: 100n, ...more }), channel };
}

/** A sale with a deposit of 5,000, and the voucher that it charges. */
export function depositSale(id: string, name: string, max: bigint, more: Partial<NewPayment> = {}): NewPayment {
  const { channel } = voucherSale(id, name, max);
  return { ...reservation(id, `deposit ${id}`, { price: 100n, amount: 5_000n, channel, ...more }) };
}

/** Stores a reserved deposit's reply, and settles it at a block. */
export async function settleDeposit({ payments }: LedgerStores, id: string, block: number, endedAt = SEEN_AT + 5) {
  const intent = { signature: Buffer.alloc(65, 1), calldata: Buffer.from('call') };
  await payments.move(id, ['reserved'], 'settling', intent, { store: Buffer.from('reply') });
  const end = { block, transaction: hash32(id), charged: 5_000n, signature: null, reason: null, endedAt };
  return payments.move(id, ['settling'], 'settled', end, { keepUntil: endedAt + 1000 });
}

/** An operation that is about to begin. */
export function operation(id: string, more: Partial<NewOperation> = {}): NewOperation {
  const rest = { channelId: null, amount: 700n, createdAt: SEEN_AT, calldata: Buffer.from(`call ${id}`) };
  return { id, network: NETWORK, kind: 'claim', ...rest, ...more };
}

/** A refund of a channel. */
export const refundOf = (id: string, name: string, more: Partial<NewOperation> = {}): NewOperation =>
  operation(id, { kind: 'refund', channelId: channelTerms(name).id, ...more });
