import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RpcError } from '../../../../../src/chain/rpc/wire.ts';
import { bytesToHex, hexToBytes } from '../../../../../src/lib/hex.ts';
import { claimCalldata } from '../../../../../src/payment/channels/calldata.ts';
import { createClaimOperations } from '../../../../../src/payment/channels/claims.ts';
import { SETTLEMENT } from '../../../../../src/payment/channels/scheme.ts';
import type { Operation, OperationOutcome } from '../../../../../src/payment/settler.ts';
import { openChannelLedger, type UnitChannel } from '../../../../support/channels/channel-ledger.ts';
import { scheme } from '../../../../support/channels/channel-payment.ts';
import { operation } from '../../../../support/ledger/channel-rows.ts';

// Claims that an earlier round or process has left open.

const { signal } = new AbortController();
const SENDER = `0x${'5e'.repeat(20)}`;

let bed: Awaited<ReturnType<typeof openChannelLedger>>;
let operated: Operation[];
let operate: (operation: Operation) => Promise<OperationOutcome>;
let noteTokens: unknown[];
beforeEach(async () => {
  bed = await openChannelLedger();
  [operated, noteTokens, operate] = [[], [], bed.contract.operate];
});
afterEach(() => bed.close());

function open() {
  const { reader, chain, clock } = bed;
  const store: typeof bed.store = {
    ...bed.store,
    noteBroadcast: (entries, token) => {
      noteTokens.push(token);
      return bed.store.noteBroadcast(entries);
    },
  };
  const relayer = {
    operate: (given: Operation) => {
      operated.push(given);
      return operate(given);
    },
  };
  return createClaimOperations({
    store,
    relayer,
    reader,
    chain,
    scheme,
    clock,
    fencingToken: 7,
  });
}

/** The calldata of a claim of these channels, each up to this sum. */
const claimOf = (channels: readonly UnitChannel[], totalClaimed: bigint): Uint8Array =>
  claimCalldata(
    channels.map(({ config }) => ({ config, maxClaimableAmount: 900n, signature: Buffer.alloc(65, 1), totalClaimed })),
    Buffer.alloc(65, 2),
  );

/** An open claim of two channels in the ledger. `transaction`: the one that was noted. */
async function left(transaction: Uint8Array | null = null) {
  const channels = [await bed.open(10_000n), await bed.open(10_000n)];
  const calldata = claimOf(channels, 500n);
  await bed.store.begin(operation('one', { calldata, amount: 1000n }));
  if (transaction) await bed.store.noteBroadcast([{ id: 'one', transaction }]);
  return { channels, calldata };
}
const row = () => bed.store.operation('one');
const LOST = Buffer.alloc(32, 9);

describe('a claim that was left open', () => {
  test('and was never sent is sent, with its own calldata, and ends by its event', async () => {
    const { calldata, channels } = await left();
    await open().resume(signal);
    expect(operated[0]).toMatchObject({ id: 'one', to: hexToBytes(SETTLEMENT), gas: 330_000n, broadcast: false });
    expect(bytesToHex(operated[0]!.data)).toBe(bytesToHex(calldata));
    expect(channels.map(({ id }) => bed.contract.of(id).totalClaimed)).toEqual([500n, 500n]);
    expect(await row()).toMatchObject({ state: 'done', amount: 1000n, endedAt: bed.clock.nowMs() });
    expect(noteTokens).toEqual([7]);
  });

  test('and was sent without an end is sent again, and says that a node may know it', async () => {
    await left(LOST);
    await open().resume(signal);
    expect(operated).toMatchObject([{ broadcast: true }]);
    expect(await row()).toMatchObject({ state: 'done', amount: 1000n });
  });

  test('and is in a block ends by that transaction, and nothing is sent', async () => {
    const { calldata } = await left(LOST);
    const { transactionHash, blockNumber } = bed.contract.mine(calldata);
    bed.contract.block += 9_998;
    await open().resume(signal);
    expect(operated).toEqual([]);
    expect(await row()).toMatchObject({ state: 'done', amount: 1000n, transaction: hexToBytes(transactionHash) });
    const filter = bed.contract.asked.find(({ method }) => method === 'eth_getLogs');
    expect(filter).toMatchObject({
      rank: 'settle',
      signal,
      fromOneProvider: true,
      params: [{ address: SETTLEMENT, fromBlock: blockNumber }],
    });
    expect(bed.contract.asked.filter(({ method }) => method === 'eth_getTransactionReceipt')).toMatchObject([
      { rank: 'settle', signal, params: [bytesToHex(LOST)] },
      { rank: 'settle', signal, params: [transactionHash] },
    ]);
  });

  test('and is recorded by a transaction that the logs do not show ends without one, and nothing is sent', async () => {
    const { calldata } = await left(LOST);
    bed.contract.mine(calldata);
    bed.contract.block += 9_999;
    await open().resume(signal);
    expect(operated).toEqual([]);
    expect(await row()).toMatchObject({
      state: 'failed',
      endedAt: bed.clock.nowMs(),
      reason: 'its rows are recorded by a transaction that the logs do not show',
    });
  });

  test.each([
    ['is behind the state', 'eth_getBlockByNumber', { result: null }],
    ['does not say how far it is', 'eth_getBlockByNumber', { error: new RpcError(-32005, 'too much') }],
    ['refuses the logs', 'eth_getLogs', { error: new RpcError(-32005, 'too much') }],
    ['gives no list of logs', 'eth_getLogs', { result: null }],
  ])('stays open, and nothing is sent, where the node of the logs %s', async (_what, method, outcome) => {
    const { calldata } = await left(LOST);
    bed.contract.mine(calldata);
    bed.contract.block += 9_999;
    const { batch } = bed.chain;
    bed.chain.batch = async (calls, options) => {
      const outcomes = await batch(calls, options);
      return calls.map((call, at) => (call.method === method ? outcome : outcomes[at]!));
    };
    await expect(open().resume(signal)).rejects.toMatchObject({ status: 502 });
    expect(operated).toEqual([]);
    expect(await row()).toMatchObject({ state: 'open' });
  });

  test('stays open where the receipt of a transaction in the logs cannot be read', async () => {
    const { calldata } = await left(LOST);
    const receipt = bed.contract.mine(calldata);
    bed.contract.mined.splice(bed.contract.mined.indexOf(receipt), 1);
    await expect(open().resume(signal)).rejects.toMatchObject({ status: 502 });
    expect(operated).toEqual([]);
    expect(await row()).toMatchObject({ state: 'open' });
  });

  test('ends by the transaction that was noted, however long ago it was mined', async () => {
    const { calldata } = await left();
    const own = hexToBytes(bed.contract.mine(calldata).transactionHash);
    await bed.store.noteBroadcast([{ id: 'one', transaction: own }]);
    bed.contract.block += 9_999;
    await open().resume(signal);
    expect(operated).toEqual([]);
    expect(await row()).toMatchObject({ state: 'done', amount: 1000n, transaction: own });
  });

  test('does not end by the transaction that was noted where another operation has ended by it', async () => {
    const { calldata } = await left();
    const own = hexToBytes(bed.contract.mine(calldata).transactionHash);
    await bed.store.noteBroadcast([{ id: 'one', transaction: own }]);
    await bed.store.begin(operation('two', { calldata, amount: 1000n }));
    await bed.store.end('two', { state: 'done', amount: 1000n, transaction: own, endedAt: 1 });
    await open().resume(signal);
    expect(operated).toEqual([]);
    expect(await row()).toMatchObject({ state: 'failed' });
  });

  test('and is recorded in part only is sent again', async () => {
    const { channels } = await left(LOST);
    bed.contract.mine(claimOf(channels.slice(0, 1), 500n));
    await open().resume(signal);
    expect(operated).toHaveLength(1);
    expect(await row()).toMatchObject({ state: 'done', amount: 500n });
  });

  test('is not ended by another claim of its channels: the newest transaction with one of its rows counts', async () => {
    const { channels, calldata } = await left(LOST);
    bed.contract.mine(claimOf(channels, 400n));
    const own = bed.contract.mine(calldata);
    bed.contract.mine(claimOf(channels, 700n));
    await open().resume(signal);
    expect(operated).toEqual([]);
    expect(await row()).toMatchObject({ state: 'done', amount: 200n, transaction: hexToBytes(own.transactionHash) });
  });

  test('whose outcome stays unknown stays open', async () => {
    await left();
    operate = async () => ({ kind: 'unknown' });
    await open().resume(signal);
    expect(await row()).toMatchObject({ state: 'open' });
  });

  test('that fails ends with the reason', async () => {
    await left();
    operate = async () => ({ kind: 'failed', reason: 'refused' });
    await open().resume(signal);
    expect(await row()).toMatchObject({ state: 'failed', reason: 'refused', endedAt: bed.clock.nowMs() });
  });

  test('does not touch a refund that is open too', async () => {
    const { channels } = await left();
    await bed.store.begin(operation('two', { kind: 'refund', channelId: channels[0]!.id, amount: 5n }), {
      charged: 0n,
    });
    await open().resume(signal);
    expect(operated.map(({ id }) => id)).toEqual(['one']);
    expect(await bed.store.operation('two')).toMatchObject({ state: 'open' });
  });
});

describe('what a claim gives the relayer', () => {
  /** The operation of an open claim, as the relayer gets it. */
  async function given() {
    const { channels, calldata } = await left();
    operate = async () => ({ kind: 'unknown' });
    await open().resume(signal);
    return { channels, calldata, given: operated[0]! };
  }

  test('shows no end in a receipt without its rows, in a reverted one, and in one of other channels', async () => {
    const { channels, given: claim } = await given();
    const other = await bed.open(10_000n);
    const event = (hex: string, total: bigint) => bed.contract.event('Claimed', [hex, SENDER], [total, total]);
    const made = [event(channels[0]!.hex, 499n), event(other.hex, 500n)];
    expect(claim.readReceipt(bed.contract.mineLogs(made))).toBeNull();
    expect(claim.readReceipt(bed.contract.mineLogs([event(channels[0]!.hex, 500n)], '0x0'))).toBeNull();
    const shown = bed.contract.mineLogs([...made, event(channels[1]!.hex, 500n)]);
    expect(claim.readReceipt(shown)).toEqual({
      kind: 'done',
      amount: 500n,
      block: bed.contract.block,
      transaction: hexToBytes(shown.transactionHash),
    });
  });

  test('finds its end on the chain once all of its rows are recorded, and none before', async () => {
    const { calldata, given: claim } = await given();
    expect(await claim.lookUp(signal)).toBeNull();
    const { transactionHash } = bed.contract.mine(calldata);
    expect(await claim.lookUp(signal)).toMatchObject({ kind: 'done', transaction: hexToBytes(transactionHash) });
    bed.contract.block += 20_000;
    expect(await claim.lookUp(signal)).toBeNull();
  });

  test('notes a transaction while the claim is open, and refuses once it has ended', async () => {
    const { given: claim } = await given();
    expect(await claim.note(LOST)).toBe(true);
    expect((await row())?.transaction).toEqual(LOST);
    await bed.store.end('one', { state: 'failed', reason: 'ended', endedAt: 5 });
    expect(await claim.note(LOST)).toBe(false);
  });
});
