import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ChainClient } from '../../../../../src/chain/rpc/client.ts';
import { bytesToHex, hexToBytes } from '../../../../../src/lib/hex.ts';
import { SETTLEMENT } from '../../../../../src/payment/channels/scheme.ts';
import { createChannelBooks } from '../../../../../src/payment/channels/settler.ts';
import { openChannelLedger, type UnitChannel } from '../../../../support/channels/channel-ledger.ts';
import { CHANNEL_TERMS } from '../../../../support/channels/channel-payment.ts';
import { NETWORK, operation } from '../../../../support/ledger/channel-rows.ts';

const { receiver, token } = CHANNEL_TERMS;
const SENDER = `0x${'5e'.repeat(20)}` as const;
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
const topic = (address: string) => `0x${address.slice(2).padStart(64, '0')}`;

let bed: Awaited<ReturnType<typeof openChannelLedger>>;
beforeEach(async () => {
  bed = await openChannelLedger();
});
afterEach(() => bed.close());

const open = () =>
  createChannelBooks({
    chain: bed.chain as unknown as ChainClient,
    store: bed.store,
    network: NETWORK,
    receiver,
    token,
  });

/** A channel of which this much is charged, and claimed as far as the ledger and the contract know. */
async function claimed(amount: bigint): Promise<UnitChannel> {
  const channel = await bed.open(10_000n);
  await bed.charge(channel, amount);
  bed.contract.put(channel.id, { totalClaimed: amount });
  bed.contract.block += 1;
  const [state] = await bed.reader.read([channel.id]);
  if (state) await bed.store.note({ ...channel.config, id: channel.id, network: NETWORK }, state, bed.clock.nowMs());
  return channel;
}

async function compare(again: readonly string[] = [], head = bed.contract.block) {
  return Object.fromEntries(await open().compareRest({ from: 0, to: 10 }, new Set(again), head));
}

describe('a channel', () => {
  test('of which the contract has recorded what the ledger says is no difference, and unclaimed charges are none', async () => {
    const channel = await claimed(500n);
    await bed.charge(channel, 900n);
    const unclaimed = await bed.open(10_000n);
    await bed.charge(unclaimed, 100n);
    expect(await compare()).toEqual({});
    expect(bed.contract.asked.at(-1)).toMatchObject({ method: 'eth_call', rank: 'collect', turn: 1 });
  });

  test('of which the contract has recorded less is missing by the rest', async () => {
    const channel = await claimed(500n);
    bed.contract.put(channel.id, { totalClaimed: 100n });
    expect(await compare()).toMatchObject({ [`channel:${channel.hex}`]: { kind: 'missing', amount: 400n } });
    bed.contract.put(channel.id, { totalClaimed: 500n });
    expect(await compare([`channel:${channel.hex}`])).toEqual({ [`channel:${channel.hex}`]: { kind: 'shown' } });
  });

  test('that is read at a block before its own is not compared, unless that block is beyond the chain', async () => {
    const channel = await claimed(500n);
    bed.contract.block -= 1;
    bed.contract.put(channel.id, { totalClaimed: 0n });
    expect(await compare([], bed.contract.block + 1)).toEqual({});
    expect(await compare([], bed.contract.block)).toMatchObject({ [`channel:${channel.hex}`]: { kind: 'missing' } });
    // What cannot be read changes nothing.
    bed.contract.before = () => {
      throw new Error('no provider');
    };
    expect(await compare([`channel:${channel.hex}`], bed.contract.block)).toEqual({});
  });

  test('that the ledger no longer has, or has no claim of, lacks nothing', async () => {
    expect(await compare(['channel:0xab', 'claim:gone'])).toEqual({
      'channel:0xab': { kind: 'shown' },
      'claim:gone': { kind: 'shown' },
    });
  });

  test('of which more is recorded than was charged is a surplus, which is told once', async () => {
    const channel = await claimed(500n);
    bed.contract.put(channel.id, { totalClaimed: 700n });
    const books = open();
    const round = async () => Object.fromEntries(await books.compareRest({ from: 0, to: 10 }, new Set(), 2000));
    expect(await round()).toMatchObject({ [`channel:${channel.hex}`]: { kind: 'surplus', amount: 200n } });
    expect(await round()).toEqual({});
  });
});

describe('a claim', () => {
  const transfer = (units: bigint) => ({
    address: bytesToHex(token),
    topics: [TRANSFER, topic(SETTLEMENT), topic(bytesToHex(receiver))],
    data: `0x${units.toString(16).padStart(64, '0')}`,
  });

  /** A claim of 500 whose transaction has these sums in its events. */
  async function done(recorded: bigint, swept: bigint | null, paid: bigint, hash?: Uint8Array): Promise<void> {
    const channel = await bed.open(10_000n);
    const { event } = bed.contract;
    const logs = [
      event('Claimed', [channel.hex, SENDER], [recorded, recorded]),
      // Of a channel of somebody else.
      event('Claimed', [`0x${'cd'.repeat(32)}`, SENDER], [9_000n, 9_000n]),
      ...(swept === null ? [] : [event('Settled', [bytesToHex(receiver), bytesToHex(token), SENDER], [swept])]),
      transfer(paid),
    ];
    const { transactionHash } = bed.contract.mineLogs(logs as Parameters<typeof bed.contract.mineLogs>[0]);
    await bed.store.begin(operation('one', { amount: 500n }));
    const transaction = hash ?? hexToBytes(transactionHash as `0x${string}`);
    await bed.store.end('one', { state: 'done', amount: 500n, transaction, endedAt: 5 });
  }

  test.each<[string, bigint, bigint | null, bigint, object]>([
    ['that recorded and swept its amount', 500n, 500n, 500n, { kind: 'shown' }],
    ['that swept more than its own', 500n, 800n, 800n, { kind: 'shown' }],
    ['that swept nothing, which a later sweep does', 500n, null, 0n, { kind: 'shown' }],
    ['that recorded less', 499n, 499n, 499n, { kind: 'missing', amount: 1n }],
    ['whose sweep did not pay', 500n, 500n, 499n, { kind: 'missing', amount: 1n }],
  ])('%s', async (_, recorded, swept, paid, verdict) => {
    await done(recorded, swept, paid);
    expect(await compare()).toMatchObject({ 'claim:one': verdict });
  });

  test('whose transaction cannot be read is unread, and is compared again after its span', async () => {
    await done(500n, 500n, 500n, Buffer.alloc(32, 1));
    expect(await compare()).toMatchObject({ 'claim:one': { kind: 'unread' } });
    const later = await open().compareRest({ from: 50, to: 60 }, new Set(['claim:one']), 2000);
    expect(later.get('claim:one')).toMatchObject({ kind: 'unread' });
    expect((await open().compareRest({ from: 50, to: 60 }, new Set(), 2000)).size).toBe(0);
  });
});
