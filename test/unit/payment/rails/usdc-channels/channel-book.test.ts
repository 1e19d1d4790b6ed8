import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createChannelBook } from '../../../../../src/payment/channels/channel.ts';
import type { ChannelState } from '../../../../../src/store/ports/channel-state.ts';
import { openChannelLedger } from '../../../../support/channels/channel-ledger.ts';
import { channelOf, scheme } from '../../../../support/channels/channel-payment.ts';
import { channelState, NETWORK } from '../../../../support/ledger/channel-rows.ts';
import { newKey } from '../../../../support/usdc/payments.ts';

const asker = { client: 'c', hasFailed: false, signal: new AbortController().signal };
const config = channelOf(newKey().privateKey);
const id = scheme.channelId(config);

let bed: Awaited<ReturnType<typeof openChannelLedger>>;
/** The requests for the channel's state, and what the chain shows. */
let asked: (typeof asker)[];
let shown: () => Promise<ChannelState>;
/** The head that the providers agree on. */
let head: number | null;
beforeEach(async () => {
  bed = await openChannelLedger();
  [asked, head] = [[], null];
  shown = async () => channelState({ block: 100 + asked.length });
});
afterEach(() => bed.close());

function open(withdrawDelaySeconds = 86_400) {
  const { store, clock } = bed;
  const read = async (given: Uint8Array, by: typeof asker) => {
    expect(Buffer.compare(given, id)).toBe(0);
    asked.push(by);
    return shown();
  };
  return createChannelBook({ store, read, network: NETWORK, withdrawDelaySeconds, lastHead: () => head, clock });
}
/** Lets a read that nothing waits for end. */
const settled = () => new Promise((done) => setTimeout(done, 20));

describe('a channel that the ledger does not know', () => {
  test('is read for its buyer and gets a row', async () => {
    const channel = await open().open(id, config, asker);
    expect(channel).toMatchObject({ network: NETWORK, charged: 0n, readAt: bed.clock.nowMs(), state: { block: 101 } });
    expect([asked, await bed.store.get(id)]).toEqual([[asker], channel]);
  });

  test('gets no row without a deposit, unless it is kept', async () => {
    shown = async () => channelState({ balance: 0n });
    await expect(open().open(id, config, asker)).rejects.toMatchObject({
      reason: 'invalid_batch_settlement_evm_channel_not_found',
    });
    expect(await bed.store.get(id)).toBeNull();
    const { channel, isNew } = await open().look(id, config, asker);
    expect([isNew, channel.charged, await bed.store.get(id)]).toEqual([true, 0n, null]);
    const kept = await open().keep(channel);
    expect(kept).toEqual({ ...channel, id: kept.id });
    expect(await open().look(id, config, asker)).toEqual({ channel: kept, isNew: false });
  });

  test('gets a row when all of its money was claimed', async () => {
    shown = async () => channelState({ balance: 0n, totalClaimed: 5n });
    expect(await open().look(id, config, asker)).toMatchObject({ isNew: false, channel: { charged: 5n } });
    expect((await bed.store.get(id))?.state.totalClaimed).toBe(5n);
  });
});

describe('the state of a known channel', () => {
  test('counts for half of five minutes without a read, then is read behind the sale, once at a time', async () => {
    const book = open();
    await book.open(id, config, asker);
    await bed.clock.advance(150_000);
    await book.open(id, config, asker);
    expect(asked).toHaveLength(1);
    await bed.clock.advance(1);
    const late = Promise.withResolvers<ChannelState>();
    shown = () => late.promise;
    const both = [await book.open(id, config, asker), await book.open(id, config, asker)];
    expect([both.map(({ state }) => state.block), asked.length]).toEqual([[101, 101], 2]);
    expect(asked[1]).toMatchObject({ client: 'c', hasFailed: false });
    expect(asked[1]?.signal).not.toBe(asker.signal);
    late.resolve(channelState({ block: 107 }));
    await expect.poll(async () => (await bed.noted(id)).state.block).toBe(107);
    expect((await book.open(id, config, asker)).state.block).toBe(107);
    expect(asked).toHaveLength(2);
  });

  test('is read behind the sale again after a read that failed', async () => {
    const book = open();
    await book.open(id, config, asker);
    await bed.clock.advance(200_000);
    shown = async () => Promise.reject(new Error('away'));
    expect((await book.open(id, config, asker)).state.block).toBe(101);
    await settled();
    await book.open(id, config, asker);
    await settled();
    expect(asked).toHaveLength(3);
  });

  test('is read before the sale once it is older than five minutes', async () => {
    const book = open();
    await book.open(id, config, asker);
    await bed.clock.advance(300_000);
    expect((await book.open(id, config, asker)).state.block).toBe(101);
    await settled();
    expect(asked).toHaveLength(2);
    await bed.clock.advance(300_001);
    shown = async () => channelState({ balance: 0n, block: 200 });
    expect((await book.open(id, config, asker)).state.balance).toBe(0n);
  });

  test('sells nothing on a state that a read could not renew, because the read was of an earlier block', async () => {
    const book = open();
    await book.open(id, config, asker);
    await bed.clock.advance(300_001);
    shown = async () => channelState({ block: 50 });
    await expect(book.look(id, config, asker)).rejects.toMatchObject({ status: 503, code: 'settlement_unavailable' });
    shown = async () => channelState({ block: 900 });
    expect(await book.look(id, config, asker)).toMatchObject({ channel: { state: { block: 900 } } });
  });

  test('is read more often where the delay of a withdrawal is short: after a third of it', async () => {
    const book = open(600);
    await book.open(id, config, asker);
    await bed.clock.advance(200_001);
    expect((await book.open(id, config, asker)).state.block).toBe(102);
  });

  test('is read again on demand, but not within two seconds', async () => {
    const book = open();
    const channel = await book.open(id, config, asker);
    await bed.clock.advance(1999);
    expect(await book.reread(channel, asker)).toBe(channel);
    await bed.clock.advance(1);
    shown = async () => channelState({ balance: 0n, block: 300 });
    expect((await book.reread(channel, asker)).state).toMatchObject({ block: 300, balance: 0n });
  });
});
