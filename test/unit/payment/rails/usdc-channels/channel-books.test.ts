import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ChainClient } from '../../../../../src/chain/rpc/client.ts';
import { RpcError } from '../../../../../src/chain/rpc/wire.ts';
import { bytesToHex, hexToBytes } from '../../../../../src/lib/hex.ts';
import { SETTLEMENT } from '../../../../../src/payment/channels/scheme.ts';
import { createChannelBooks } from '../../../../../src/payment/channels/settler.ts';
import { openChannelLedger, type UnitChannel } from '../../../../support/channels/channel-ledger.ts';
import { CHANNEL_TERMS } from '../../../../support/channels/channel-payment.ts';
import { channelState, channelTerms, NETWORK, operation } from '../../../../support/ledger/channel-rows.ts';

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

  test('that lacks something is missing in each round', async () => {
    const channel = await claimed(500n);
    bed.contract.put(channel.id, { totalClaimed: 100n });
    const books = open();
    for (const _ of [1, 2]) {
      const found = await books.compareRest({ from: 0, to: 10 }, new Set(), bed.contract.block);
      expect(found.get(`channel:${channel.hex}`)).toMatchObject({ kind: 'missing', amount: 400n });
    }
  });

  test('is compared once, on whichever page of the ledger it stands', async () => {
    const terms = Array.from({ length: 501 }, (_, at) => channelTerms(`${at}`)).sort((one, other) =>
      Buffer.compare(one.id, other.id),
    );
    for (const one of terms) {
      await bed.store.note(one, channelState({ totalClaimed: 7n }), 1);
      bed.contract.put(one.id, { totalClaimed: 9n });
    }
    const found = await compare();
    expect(Object.keys(found)).toEqual(terms.map(({ id }) => `channel:${bytesToHex(id)}`));
    expect(new Set(Object.values(found).map((verdict) => verdict.kind))).toEqual(new Set(['surplus']));
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
  const SOMEBODY: `0x${string}` = `0x${'cd'.repeat(20)}`;
  const word = (units: bigint) => `0x${units.toString(16).padStart(64, '0')}`;
  const paid = (units: bigint, more: { address?: string; to?: string; data?: string } = {}) => ({
    address: more.address ?? bytesToHex(token),
    topics: [TRANSFER, topic(SETTLEMENT), topic(more.to ?? bytesToHex(receiver))],
    data: more.data ?? word(units),
  });
  const swept = (units: bigint, to = bytesToHex(receiver), of = bytesToHex(token)) =>
    bed.contract.event('Settled', [to, of, SENDER], [units]);

  /** A claim of 500 that ended with this transaction. */
  async function ended(transaction: Uint8Array, id = 'one', endedAt = 5): Promise<void> {
    await bed.store.begin(operation(id, { amount: 500n }));
    await bed.store.end(id, { state: 'done', amount: 500n, transaction, endedAt });
  }

  /** A claim of 500 whose transaction records this much, and has these logs after it. */
  async function done(recorded: bigint, rest: (hex: string) => readonly object[], id?: string, endedAt?: number) {
    const channel = await bed.open(10_000n);
    const { event } = bed.contract;
    const logs = [
      event('Claimed', [channel.hex, SENDER], [recorded, recorded]),
      // Of a channel of somebody else.
      event('Claimed', [`0x${'cd'.repeat(32)}`, SENDER], [9_000n, 9_000n]),
      ...rest(channel.hex),
    ];
    const { transactionHash } = bed.contract.mineLogs(logs as Parameters<typeof bed.contract.mineLogs>[0]);
    await ended(hexToBytes(transactionHash as `0x${string}`), id, endedAt);
  }

  test.each<[string, bigint, (hex: string) => readonly object[], object]>([
    ['that recorded and swept its amount', 500n, () => [swept(500n), paid(500n)], { kind: 'shown' }],
    ['that swept more than its own', 500n, () => [swept(800n), paid(800n)], { kind: 'shown' }],
    ['that swept nothing, which a later sweep does', 500n, () => [paid(0n)], { kind: 'shown' }],
    ['beside a sweep to others', 500n, () => [swept(9n, SOMEBODY), swept(9n, undefined, SOMEBODY)], { kind: 'shown' }],
    ['beside what is no amount', 500n, () => [swept(500n), paid(500n), paid(0n, { data: '0x' })], { kind: 'shown' }],
    ['that recorded less', 499n, () => [swept(499n), paid(499n)], { kind: 'missing', amount: 1n }],
    [
      'that recorded less beside a refund',
      499n,
      (hex) => [bed.contract.event('Refunded', [hex, SENDER], [1n])],
      { kind: 'missing', amount: 1n },
    ],
    ['whose sweep did not pay', 500n, () => [swept(500n), paid(499n)], { kind: 'missing', amount: 1n }],
    [
      'whose sweep paid in another token',
      500n,
      () => [swept(500n), paid(500n, { address: SOMEBODY })],
      { kind: 'missing', amount: 500n },
    ],
    [
      'whose sweep paid somebody else',
      500n,
      () => [swept(500n), paid(500n, { to: SOMEBODY })],
      { kind: 'missing', amount: 500n },
    ],
  ])('%s', async (_, recorded, rest, verdict) => {
    await done(recorded, rest);
    expect(await compare()).toMatchObject({ 'claim:one': verdict });
  });

  test('is missing only where a second provider says so too', async () => {
    await done(500n, () => []);
    const [whole] = bed.contract.mined;
    if (!whole) throw new Error('nothing was mined');
    const less = { ...whole, logs: [] };
    /** What the two looks are told. */
    const told = async (first: typeof whole, second: typeof whole) => {
      bed.contract.before = (method) => {
        if (method === 'eth_getTransactionReceipt')
          bed.contract.mined[0] = bed.contract.asked.at(-1)?.turn === 0 ? second : first;
      };
      return (await compare())['claim:one'];
    };
    expect(await told(less, whole)).toEqual({ kind: 'shown' });
    expect(await told(less, less)).toMatchObject({ kind: 'missing', amount: 500n });
    // Nobody is asked again about what the first one shows.
    expect(await told(whole, less)).toEqual({ kind: 'shown' });
  });

  test('whose transaction cannot be read is unread, and is compared again after its span', async () => {
    await ended(Buffer.alloc(32, 1));
    expect(await compare()).toMatchObject({ 'claim:one': { kind: 'unread' } });
    const later = await open().compareRest({ from: 50, to: 60 }, new Set(['claim:one']), 2000);
    expect(later.get('claim:one')).toMatchObject({ kind: 'unread' });
    expect((await open().compareRest({ from: 50, to: 60 }, new Set(), 2000)).size).toBe(0);
  });

  test('is unread while no provider answers', async () => {
    await done(500n, () => []);
    bed.contract.before = () => {
      throw new RpcError(-32000, 'no provider');
    };
    expect(await compare()).toMatchObject({ 'claim:one': { kind: 'unread' } });
  });

  test('is unread without a transaction, and no provider is asked for one', async () => {
    await done(500n, () => []);
    await bed.sql('UPDATE channel_operations SET transaction_hash = NULL');
    expect(await compare()).toMatchObject({ 'claim:one': { kind: 'unread' } });
    expect(bed.contract.asked.map(({ method }) => method)).not.toContain('eth_getTransactionReceipt');
  });

  test('of an earlier round is compared beside those of the span', async () => {
    await done(400n, () => [], 'one', 5);
    await done(500n, () => [], 'two', 55);
    const found = await open().compareRest({ from: 50, to: 60 }, new Set(['claim:one']), bed.contract.block);
    expect(Object.fromEntries(found)).toMatchObject({
      'claim:one': { kind: 'missing', amount: 100n },
      'claim:two': { kind: 'shown' },
    });
  });
});
