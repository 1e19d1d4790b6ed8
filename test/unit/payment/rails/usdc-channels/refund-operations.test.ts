import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RpcError } from '../../../../../src/chain/rpc/wire.ts';
import { bytesToHex, hexToBytes } from '../../../../../src/lib/hex.ts';
import {
  claimCalldata,
  multicallCalldata,
  refundCalldata,
  settleCalldata,
  withCall,
} from '../../../../../src/payment/channels/calldata.ts';
import { createRefundOperations } from '../../../../../src/payment/channels/refund-sending.ts';
import { SETTLEMENT, SETTLEMENT_BYTES } from '../../../../../src/payment/channels/scheme.ts';
import type { Operation, OperationOutcome } from '../../../../../src/payment/settler.ts';
import type { ChannelState } from '../../../../../src/store/ports/channel-state.ts';
import { openChannelLedger, type UnitChannel } from '../../../../support/channels/channel-ledger.ts';
import { CHANNEL_TERMS } from '../../../../support/channels/channel-payment.ts';
import { operation } from '../../../../support/ledger/channel-rows.ts';

// Rounds over the open refunds, over the real ledger. The contract on a node is in test/conformance/channels/refunds.test.ts.

/** What is asked for the end of a refund. */
const EVIDENCE = ['eth_getTransactionReceipt', 'eth_getLogs'];
const LOST = Buffer.alloc(32, 9);
const ALERT = 'error: a refund that was sent did not go through; it is tried again after a pause';

let bed: Awaited<ReturnType<typeof openChannelLedger>>;
let channel: UnitChannel;
let operated: Operation[];
let operate: (operation: Operation) => Promise<OperationOutcome>;
/** What the provider shows of the channel; null shows what the contract holds. */
let shown: Partial<ChannelState> | null;
/** Whether the provider cannot read the channel. */
let unreadable: boolean;
let noteTokens: unknown[];
let refunds: ReturnType<typeof createRefundOperations>;
beforeEach(async () => {
  bed = await openChannelLedger();
  channel = await bed.open(10_000n);
  [operated, shown, noteTokens, operate, unreadable] = [[], null, [], bed.contract.operate, false];
  refunds = open();
});
afterEach(() => bed.close());

function open() {
  const { reader, chain, clock, log } = bed;
  const store: typeof bed.store = {
    ...bed.store,
    noteBroadcast: (entries, token) => {
      noteTokens.push(token);
      return bed.store.noteBroadcast(entries);
    },
  };
  return createRefundOperations({
    sender: `0x${'5e'.repeat(20)}`,
    store,
    chain,
    clock,
    log,
    fencingToken: 7,
    receiver: CHANNEL_TERMS.receiver,
    token: CHANNEL_TERMS.token,
    reader: {
      ...reader,
      read: async (...given) =>
        (await reader.read(...given)).map((state) => (unreadable ? null : state && { ...state, ...shown })),
    },
    relayer: {
      operate: (given) => {
        operated.push(given);
        return operate(given);
      },
    },
  });
}

/** An open refund of 4,000 with the channel's next nonce. */
async function begin(id = 'one', of = channel) {
  const calldata = refundCalldata(of.config, 4000n, bed.contract.of(of.id).refundNonce, Buffer.alloc(65, 1));
  const { charged } = await bed.noted(of.id);
  expect(
    await bed.store.begin(operation(id, { kind: 'refund', channelId: of.id, calldata }), { charged: charged }),
  ).toBe(true);
  return calldata;
}
const row = (id = 'one') => bed.store.operation(id);

describe('an open refund', () => {
  test('is sent once, ends by its event, and its channel has the new balance before that', async () => {
    const data = await begin();
    await refunds.run();
    expect(operated).toMatchObject([{ id: 'one', to: SETTLEMENT_BYTES, data, gas: 400_000n, broadcast: false }]);
    const transaction = hexToBytes(bed.contract.mined[0]!.transactionHash);
    expect(await row()).toMatchObject({ state: 'done', amount: 4000n, transaction, endedAt: bed.clock.nowMs() });
    expect((await bed.noted(channel.id)).state).toMatchObject({ balance: 6000n, refundNonce: 1n });
    await refunds.run();
    expect([operated.length, noteTokens, bed.logged]).toEqual([1, [7], []]);
  });

  test('is not sent where the channel holds nothing beyond its charges any more', async () => {
    await bed.charge(channel, 3000n);
    await begin();
    bed.contract.put(channel.id, { balance: 3000n });
    await refunds.run();
    expect(operated).toEqual([]);
    expect(await row()).toMatchObject({
      state: 'failed',
      reason: 'the channel holds nothing that could go back',
      endedAt: bed.clock.nowMs(),
    });
    expect((await bed.noted(channel.id)).state.balance).toBe(3000n);
  });

  test.each([{ balance: 0n }, { refundNonce: 7n }])(
    'is neither sent nor ended while the node is behind what is known of the channel: %o',
    async (older) => {
      await begin();
      const { block } = (await bed.noted(channel.id)).state;
      shown = { ...older, block: block - 1 };
      await expect(refunds.run()).rejects.toMatchObject({ status: 502 });
      expect([operated, (await row())?.state]).toEqual([[], 'open']);
      shown = null;
      await refunds.run();
      expect([operated.length, (await row())?.state]).toEqual([1, 'done']);
    },
  );

  test('is sent where the channel holds one unit beyond its charges', async () => {
    await bed.charge(channel, 3000n);
    await begin();
    bed.contract.put(channel.id, { balance: 3001n });
    await refunds.run();
    expect(operated).toHaveLength(1);
  });

  test('that was sent is looked for first, and ends by its transaction without another one', async () => {
    const calldata = await begin();
    const { transactionHash } = bed.contract.mine(calldata);
    await bed.store.noteBroadcast([{ id: 'one', transaction: hexToBytes(transactionHash) }]);
    await refunds.run();
    expect(operated).toEqual([]);
    expect(await row()).toMatchObject({ state: 'done', amount: 4000n, transaction: hexToBytes(transactionHash) });
  });

  test('that was sent and is not in a block is sent again, although the channel is empty, and says that a node may know it', async () => {
    await begin();
    await bed.store.noteBroadcast([{ id: 'one', transaction: LOST }]);
    bed.contract.put(channel.id, { balance: 0n });
    operate = async () => ({ kind: 'unknown' });
    await refunds.run();
    expect(operated).toMatchObject([{ broadcast: true }]);
    expect(await row()).toMatchObject({ state: 'open' });
  });

  test('that the relayer could not send ends as failed', async () => {
    await begin();
    operate = async () => ({ kind: 'failed', reason: 'refused by the simulation' });
    await refunds.run();
    expect(await row()).toMatchObject({ state: 'failed', reason: 'refused by the simulation' });
  });

  test('of which nothing is known stays open', async () => {
    await begin();
    operate = async () => ({ kind: 'unknown' });
    await refunds.run();
    expect(await row()).toMatchObject({ state: 'open' });
    expect(bed.logged).toEqual([]);
  });

  test('ends as the chain shows it where the relayer’s transaction failed because a third party was faster', async () => {
    const calldata = await begin();
    operate = async (given) => {
      bed.contract.mine(calldata);
      await given.note(hexToBytes(bed.contract.mine(calldata).transactionHash));
      return { kind: 'failed', reason: 'reverted' };
    };
    await refunds.run();
    expect(await row()).toMatchObject({
      state: 'done',
      amount: 4000n,
      transaction: hexToBytes(bed.contract.mined[0]!.transactionHash),
    });
    expect(bed.logged).toEqual([]);
  });

  test('stays open until the provider shows the channel after it, at its block or later, and is not sent again', async () => {
    await begin();
    shown = { refundNonce: 0n };
    await refunds.run();
    expect(await row()).toMatchObject({ state: 'open' });
    shown = { block: bed.contract.block - 1 };
    await refunds.run();
    expect(await row()).toMatchObject({ state: 'open' });
    expect((await bed.noted(channel.id)).state.balance).toBe(10_000n);
    shown = null;
    await refunds.run();
    expect([operated.length, (await row())?.state]).toEqual([1, 'done']);
  });

  test('that has ended is not looked for again while its channel cannot be read', async () => {
    await begin();
    unreadable = true;
    await refunds.run();
    const looked = () => bed.contract.asked.filter(({ method }) => EVIDENCE.includes(method)).length;
    const before = looked();
    await refunds.run();
    await refunds.run();
    expect([operated.length, looked(), (await row())?.state]).toEqual([1, before, 'open']);
    unreadable = false;
    await refunds.run();
    expect([operated.length, looked(), (await row())?.state]).toEqual([1, before, 'done']);
  });

  test('is not looked for again while the provider shows its channel at an earlier block', async () => {
    await begin();
    shown = { block: bed.contract.block - 1 };
    await refunds.run();
    const looked = () => bed.contract.asked.filter(({ method }) => EVIDENCE.includes(method)).length;
    const before = looked();
    await refunds.run();
    expect([operated.length, looked(), (await row())?.state]).toEqual([1, before, 'open']);
  });

  test('whose channel cannot be read is sent, because the contract refuses what it cannot refund', async () => {
    await begin();
    unreadable = true;
    await refunds.run();
    expect(operated).toHaveLength(1);
  });

  test('that the relayer calls done without a note of its transaction stays open until the nonce is used', async () => {
    const calldata = await begin();
    shown = { refundNonce: 0n };
    operate = async (given) => given.readReceipt(bed.contract.mine(calldata)) ?? { kind: 'unknown' };
    await refunds.run();
    expect(await row()).toMatchObject({ state: 'open', transaction: null });
    shown = null;
    await refunds.run();
    expect([operated.length, await row()]).toMatchObject([1, { state: 'done', amount: 4000n }]);
  });

  test('that the relayer calls done ends so, although no node shows its log yet', async () => {
    const calldata = await begin();
    operate = async ({ note, readReceipt }) => {
      const receipt = bed.contract.mine(calldata);
      await note(hexToBytes(receipt.transactionHash));
      return readReceipt(receipt) ?? { kind: 'unknown' };
    };
    bed.contract.before = (method) => {
      if (method === 'eth_getLogs' || method === 'eth_getTransactionReceipt') throw new RpcError(-32000, 'not yet');
    };
    await refunds.run();
    expect(await row()).toMatchObject({ state: 'done', amount: 4000n });
  });

  test('gives the relayer its evidence: the receipt’s event, and what the chain shows of it', async () => {
    const calldata = await begin();
    const found: unknown[] = [];
    operate = async ({ lookUp, note, readReceipt }) => {
      found.push(await lookUp(AbortSignal.timeout(60_000)));
      const receipt = bed.contract.mine(calldata);
      await note(hexToBytes(receipt.transactionHash));
      found.push(readReceipt(receipt), await lookUp(AbortSignal.timeout(60_000)));
      return { kind: 'unknown' };
    };
    await refunds.run();
    const done = { kind: 'done', amount: 4000n };
    expect(found).toMatchObject([null, done, done]);
  });

  test('whose row has ended meanwhile takes no note, and does not count as sent', async () => {
    await begin();
    operate = async (given) => {
      await bed.store.end('one', { state: 'failed', reason: 'by another process', endedAt: 1 });
      expect(await given.note(LOST)).toBe(false);
      return { kind: 'failed', reason: 'its row has ended' };
    };
    await refunds.run();
    // A refund that was sent would be looked for, and an alert logged.
    expect([bed.logged, (await row())?.transaction]).toEqual([[], null]);
  });

  test('that failed after it was sent stays open until the nonce is used', async () => {
    const calldata = await begin();
    bed.contract.put(channel.id, { balance: 0n });
    const { transactionHash } = bed.contract.mine(calldata);
    await bed.store.noteBroadcast([{ id: 'one', transaction: hexToBytes(transactionHash) }]);
    shown = { refundNonce: 0n };
    await refunds.run();
    expect(await row()).toMatchObject({ state: 'open' });
    shown = null;
    await refunds.run();
    expect(await row()).toMatchObject({ state: 'failed', reason: 'its nonce is used, and nothing went back' });
  });
});

describe('a refund that was sent in vain', () => {
  beforeEach(async () => {
    await begin();
    operate = async (given) => {
      if (!given.broadcast) await given.note(LOST);
      return { kind: 'failed', reason: 'reverted' };
    };
  });

  test('is sent again after pauses that double from a second to an hour, and the operator is told each time', async () => {
    await refunds.run();
    expect([operated.length, bed.messages()]).toEqual([1, [ALERT]]);
    expect(bed.logged[0]?.[2]).toEqual({ channel: channel.hex, reason: 'reverted' });
    const pausesMs = [1000, 2000, 4000, ...Array.from({ length: 9 }, (_, at) => Math.min(8000 * 2 ** at, 3_600_000))];
    for (const [at, ms] of pausesMs.entries()) {
      await bed.clock.advance(ms - 1);
      await refunds.run();
      expect(operated.length, `before pause ${at} of ${ms} ms has ended`).toBe(at + 1);
      await bed.clock.advance(1);
      await refunds.run();
      expect(operated.length, `after pause ${at} of ${ms} ms`).toBe(at + 2);
    }
    expect(pausesMs.at(-1)).toBe(2_048_000);
    await bed.clock.advance(3_600_000);
    await refunds.run();
    const before = operated.length;
    await bed.clock.advance(3_599_999);
    await refunds.run();
    expect(operated.length).toBe(before);
    await bed.clock.advance(1);
    await refunds.run();
    expect([operated.length, (await row())?.state]).toEqual([before + 1, 'open']);
  });

  test('ends once it goes through, and its channel’s next refund has no pause', async () => {
    await refunds.run();
    operate = bed.contract.operate;
    await bed.clock.advance(1000);
    await refunds.run();
    expect(await row()).toMatchObject({ state: 'done' });
    await begin('two');
    await refunds.run();
    expect(await row('two')).toMatchObject({ state: 'done' });
  });
});

describe('a refund that claims too', () => {
  const SENDER = `0x${'5e'.repeat(20)}`;
  let calldata: Buffer;
  let swept: Uint8Array;
  beforeEach(async () => {
    await bed.charge(channel, 3000n);
    const { config } = channel;
    const row = { config, maxClaimableAmount: 3000n, signature: Buffer.alloc(65, 2), totalClaimed: 3000n };
    const refund = refundCalldata(config, 4000n, 0n, Buffer.alloc(65, 1));
    calldata = Buffer.from(multicallCalldata([claimCalldata([row], Buffer.alloc(65, 3)), refund]));
    swept = withCall(calldata, settleCalldata(CHANNEL_TERMS.receiver, CHANNEL_TERMS.token));
    await bed.store.begin(operation('one', { kind: 'refund', channelId: channel.id, calldata }), { charged: 3000n });
  });

  test('pays the seller out in the same transaction, after a simulation as the relayer', async () => {
    await refunds.run();
    expect(operated.map(({ data }) => Buffer.from(data).toString('hex'))).toEqual([Buffer.from(swept).toString('hex')]);
    const simulated = bed.contract.asked.find(({ params: [call] }) => (call as { from?: string })?.from === SENDER);
    expect(simulated).toMatchObject({
      method: 'eth_call',
      rank: 'settle',
      params: [{ from: SENDER, to: SETTLEMENT, data: bytesToHex(swept), gas: '0x61a80' }, '0x3e8'],
    });
    expect(await row()).toMatchObject({ state: 'done', amount: 4000n });
  });

  test('goes without that where the contract refuses it', async () => {
    bed.contract.isSweepRefused = true;
    await refunds.run();
    expect(operated.map(({ data }) => Buffer.from(data).toString('hex'))).toEqual([calldata.toString('hex')]);
    expect(await row()).toMatchObject({ state: 'done', amount: 4000n });
  });
});

describe('a round', () => {
  test('carries out all open refunds, leaves claims alone, and rejects for one that cannot be read', async () => {
    const other = await bed.open(10_000n);
    await begin('one');
    await begin('two', other);
    await bed.store.begin(operation('claim'));
    operate = async (given) => {
      if (given.id === 'one') throw new Error('the ledger is away');
      return bed.contract.operate(given);
    };
    await expect(refunds.run()).rejects.toThrow('the ledger is away');
    expect([await row('one'), await row('two'), await row('claim')]).toMatchObject([
      ...[{ state: 'open' }, { state: 'done' }, { state: 'open' }],
    ]);
    operate = bed.contract.operate;
    await refunds.run();
    expect(await row('one')).toMatchObject({ state: 'done' });
  });

  test('that is asked for during another makes one more, whose refunds are carried out too', async () => {
    await begin();
    const held = Promise.withResolvers<void>();
    operate = async (given) => {
      await held.promise;
      return bed.contract.operate(given);
    };
    const first = refunds.run();
    await expect.poll(() => operated.length).toBe(1);
    const other = await bed.open(10_000n);
    await begin('two', other);
    const second = refunds.run();
    held.resolve();
    await Promise.all([first, second]);
    expect(operated.map(({ id }) => id)).toEqual(['one', 'two']);
    expect([(await row('one'))?.state, (await row('two'))?.state]).toEqual(['done', 'done']);
    operated.length = 0;
    await refunds.run();
    expect(operated).toEqual([]);
  });

  test('that is asked for during the one more round makes another one, and waits for it', async () => {
    await begin('one');
    const [second, third] = [await bed.open(10_000n), await bed.open(10_000n)];
    const asked: Promise<void>[] = [];
    operate = async (given) => {
      if (given.id === 'one') await begin('two', second);
      if (given.id === 'two') await begin('three', third);
      if (given.id !== 'three') asked.push(refunds.run());
      return bed.contract.operate(given);
    };
    await refunds.run();
    await Promise.all(asked);
    expect(operated.map(({ id }) => id)).toEqual(['one', 'two', 'three']);
    expect(await row('three')).toMatchObject({ state: 'done' });
  });

  test('leaves an operation alone whose calldata holds no refund', async () => {
    const calldata = claimCalldata([], Buffer.alloc(65));
    await bed.store.begin(operation('odd', { kind: 'refund', channelId: channel.id, calldata }), { charged: 0n });
    const { length } = bed.contract.asked;
    await refunds.run();
    expect([operated, bed.contract.asked.length, (await row('odd'))?.state]).toEqual([[], length, 'open']);
  });
});
