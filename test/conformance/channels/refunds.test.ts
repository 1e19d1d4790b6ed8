import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { privateKeyToAccount } from 'viem/accounts';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { RpcError } from '../../../src/chain/rpc/wire.ts';
import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import { signRecoverable } from '../../../src/lib/secp256k1.ts';
import type { Sqlite } from '../../../src/lib/sqlite-file.ts';
import { type ChannelMessage, createChannelBook, createChannelReader } from '../../../src/payment/channels/channel.ts';
import { createRefund } from '../../../src/payment/channels/refund.ts';
import { createRefundOperations } from '../../../src/payment/channels/refund-sending.ts';
import { SETTLEMENT } from '../../../src/payment/channels/scheme.ts';
import { createTurns } from '../../../src/payment/channels/turns.ts';
import { hashClient } from '../../../src/payment/ledger.ts';
import type { ChannelState } from '../../../src/store/ports/channel-state.ts';
import type { ChannelOperation, ChannelStore } from '../../../src/store/ports/channels.ts';
import { createAheadClock } from '../../support/ahead-clock.ts';
import { type ChainChannel, createChainChannels } from '../../support/channels/chain-channels.ts';
import { createChannelStage } from '../../support/channels/channel-contract.ts';
import { scheme } from '../../support/channels/channel-payment.ts';
import { voucherSale } from '../../support/ledger/channel-rows.ts';
import { openTestLedger, storesOf } from '../../support/ledger/fresh-ledger.ts';
import { openChainRelayer } from '../../support/usdc/chain-relayer.ts';

// Refunds of payment channels: the real ledger, the real relayer, the contract on a real node.

const NETWORK = 'eip155:5042';
const DEPOSIT = 1_000_000n;
const PART = 100_000n;
const PAUSE_MS = 600_000;
const PREFIX = 'invalid_batch_settlement_evm_';
const IDENTITY = '127.0.0.1';
const asker = {
  client: IDENTITY,
  hasFailed: false,
  signal: new AbortController().signal,
};
/** What each channel has bought before its refund. */
const CALL = 500n;
let network: EmbeddedNetwork;
let channels: ReturnType<typeof createChainChannels>;
let stage: ReturnType<typeof createChannelStage>;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
  stage = createChannelStage(network);
});
afterAll(() => network?.stop());

let bed: Awaited<ReturnType<typeof openChainRelayer>>;
let folder: string;
let db: Sqlite;
let store: ChannelStore;
let alerts: string[];
const clock = createAheadClock();
beforeEach(async () => {
  channels = createChainChannels(network, { withdrawDelay: 900 });
  bed = await openChainRelayer(network);
  folder = mkdtempSync(join(tmpdir(), 'refunds-'));
  db = openTestLedger(join(folder, 'ledger.db'));
  store = storesOf(db).channels;
  alerts = [];
  clock.aheadMs = 0;
});
afterEach(async () => {
  await bed.close();
  db.close();
  rmSync(folder, { recursive: true });
});

/** The rail's parts over the real chain. `reader`: what the process that settles sees of channels. */
function open(
  reader = createChannelReader(bed.chain),
  relayer: Pick<typeof bed.relayer, 'operate'> = bed.relayer,
  chain: Pick<typeof bed.chain, 'batch' | 'each' | 'agreed'> = bed.chain,
) {
  const read = (id: Uint8Array) => stateOf(id);
  const book = createChannelBook({
    store,
    read,
    network: NETWORK,
    withdrawDelaySeconds: 900,
    lastHead: bed.chain.agreed.lastHead,
    clock,
  });
  const refund = createRefund({
    store,
    book,
    turns: createTurns(clock),
    scheme,
    onBegun: () => {},
    network: NETWORK,
    waitMs: 1,
    clock,
    status: { cannotSend: () => null },
    sign: (digest) => signRecoverable(digest, channels.authorizer.privateKey),
  });
  const operations = createRefundOperations({
    store,
    relayer,
    reader,
    chain,
    sender: bed.wallet.address,
    clock,
    receiver: channels.receiver,
    token: channels.token,
    log: { warn: () => {}, error: (_, message) => void alerts.push(message) },
  });
  const ask = async ({ id, config, signVoucher }: ChainChannel, amount: bigint | null = null) => {
    const { charged = 0n } = (await store.get(id)) ?? {};
    const voucher = { channelId: id, maxClaimableAmount: charged, signature: signVoucher(charged) };
    const call = { ...asker, identity: IDENTITY } as unknown as ChannelMessage['call'];
    return refund({
      payload: { kind: 'refund', config, amount, voucher },
      channelId: id,
      call,
      identifier: null,
      asker,
    });
  };
  return {
    ask,
    operations,
    /** Asks for a refund, and returns its row. */
    async begin(channel: ChainChannel, amount: bigint | null = null): Promise<ChannelOperation> {
      await expect(ask(channel, amount)).rejects.toMatchObject({ code: 'settlement_unknown' });
      const row = (await store.openOperations(10)).find(({ channelId }) => channelId && same(channelId, channel.id));
      if (!row) throw new Error('no open refund');
      return row;
    },
  };
}

const same = (a: Uint8Array, b: Uint8Array) => Buffer.compare(a, b) === 0;
async function stateOf(id: Uint8Array): Promise<ChannelState> {
  const [state] = await createChannelReader(bed.chain).read([id]);
  if (!state) throw new Error('unread');
  return state;
}
/** A reader that shows these states first, as a provider that is behind does, and then the real ones. */
function readerAfter(states: ChannelState[]) {
  const real = createChannelReader(bed.chain);
  return {
    ...real,
    read: async (ids: readonly Uint8Array[]) => {
      const old = states.shift();
      return old ? [old] : real.read(ids);
    },
  };
}
/** A channel with a deposit that has bought a call. DEPOSIT is left of it. */
const funded = () => charged(CALL, DEPOSIT + CALL);
/** A channel with a deposit, charged by one voucher. */
async function charged(max: bigint, deposit = DEPOSIT): Promise<ChainChannel> {
  const channel = await channels.open(deposit);
  expect(await bed.relayer.settle([channel.deposit(deposit)])[0]).toMatchObject({ kind: 'settled' });
  await store.note({ ...channel.config, id: channel.id, network: NETWORK }, await stateOf(channel.id), clock.nowMs());
  bed.mined.length = 0;
  const id = bytesToHex(channel.id);
  const sale = voucherSale(id, id, max, { price: max, amount: max, reservedAt: clock.nowMs() });
  const clientHash = hashClient(sale.nonce, IDENTITY);
  const paid = { ...sale, clientHash, channel: { channelId: channel.id, max, signature: channel.signVoucher(max) } };
  expect(await store.charge(paid, new Uint8Array(), 0)).not.toBeNull();
  return channel;
}
const payerOf = async ({ privateKey }: ChainChannel) => stage.walletOf(privateKeyToAccount(bytesToHex(privateKey)));
const structOf = ({ config }: ChainChannel) =>
  Object.fromEntries(
    Object.entries(config).map(([name, value]) => [name, value instanceof Uint8Array ? bytesToHex(value) : value]),
  );
/** The payer takes this much by itself, without us. */
async function withdraw(channel: ChainChannel, amount: bigint): Promise<() => Promise<unknown>> {
  const payer = await payerOf(channel);
  await stage.call('initiateWithdraw', [structOf(channel), amount], payer);
  await network.rpc('evm_increaseTime', [901]);
  await network.rpc('evm_mine', []);
  return () => stage.call('finalizeWithdraw', [structOf(channel)], payer);
}
const openRows = async () => (await store.openOperations(10)).length;

describe('a refund', () => {
  test('pays the rest back in one transaction, and the ledger knows the new balance when it ends', async () => {
    const channel = await funded();
    const { begin, operations } = open();
    const { id } = await begin(channel);
    await operations.run();
    expect(await store.operation(id)).toMatchObject({ state: 'done', amount: DEPOSIT, calldata: null });
    expect(await store.get(channel.id)).toMatchObject({ state: { balance: CALL, refundNonce: 1n } });
    expect([bed.mined.length, alerts]).toEqual([1, []]);
  });

  test('of a channel with unclaimed charges claims them and pays them out to the receiver in the same transaction', async () => {
    const channel = await charged(5000n);
    const { begin, operations } = open();
    const { id } = await begin(channel);
    await operations.run();
    expect(await store.operation(id)).toMatchObject({ state: 'done', amount: DEPOSIT - 5000n });
    expect([bed.mined.length, await stage.usdcOf(bytesToHex(channels.receiver))]).toEqual([1, 5000n]);
    expect(await store.totals(NETWORK)).toEqual({ charged: 5000n, claimed: 5000n, writtenOff: 0n });
    process.stderr.write(`gas of a refund with a claim and a sweep: ${bed.mined[0]?.gasUsed}\n`);
  });

  test('goes back to the payer although the receiver can be paid nothing, and the claim is recorded', async () => {
    const channel = await charged(5000n);
    const settle = '9db32a8f';
    const chain = {
      ...bed.chain,
      each: async (...[calls, options]: Parameters<typeof bed.chain.each>) =>
        JSON.stringify(calls).includes(settle)
          ? [[{ error: new RpcError(3, 'execution reverted: blocked') }]]
          : bed.chain.each(calls, options),
    };
    const { begin, operations } = open(undefined, undefined, chain);
    const { id } = await begin(channel);
    await operations.run();
    expect(await store.operation(id)).toMatchObject({ state: 'done', amount: DEPOSIT - 5000n });
    expect(await stateOf(channel.id)).toMatchObject({ balance: 5000n, totalClaimed: 5000n });
    expect(await stage.usdcOf(bytesToHex(channels.receiver))).toBe(0n);
  });

  test('that moves nothing ends as failed after one transaction, and none is sent again', async () => {
    const channel = await funded();
    const finalize = await withdraw(channel, DEPOSIT);
    const before = await stateOf(channel.id);
    const { begin, operations } = open(readerAfter([before]));
    const { id } = await begin(channel);
    await finalize();
    for (let round = 0; round < 5; round++) await operations.run();
    expect(bed.mined.length).toBe(1);
    expect(await store.operation(id)).toMatchObject({ state: 'failed', reason: expect.stringContaining('nothing') });
    expect(await store.get(channel.id)).toMatchObject({ state: { balance: CALL, refundNonce: 1n } });
  });

  test('that would move nothing is not sent', async () => {
    const channel = await funded();
    const finalize = await withdraw(channel, DEPOSIT);
    const { begin, operations } = open();
    const { id } = await begin(channel);
    await finalize();
    await operations.run();
    expect(await store.operation(id)).toMatchObject({ state: 'failed', transaction: null });
    expect([bed.mined, await openRows()]).toEqual([[], 0]);
  });

  test('whose nonce another refund has used before it was sent ends as failed, and costs no gas', async () => {
    const channel = await funded();
    const { begin, operations } = open();
    const { id } = await begin(channel);
    const signature = signRecoverable(scheme.refundDigest(channel.id, 0n, 5n), channels.authorizer.privateKey);
    await stage.call('refundWithSignature', [structOf(channel), 5n, 0n, bytesToHex(signature)]);
    for (let round = 0; round < 3; round++) await operations.run();
    expect(await store.operation(id)).toMatchObject({ state: 'failed', transaction: null });
    expect([bed.mined, await openRows()]).toEqual([[], 0]);
    expect(await store.get(channel.id)).toMatchObject({ state: { balance: DEPOSIT + CALL - 5n, refundNonce: 1n } });
  });

  test('that a third party carried out after our process died is done by that transaction, and ours is not sent again', async () => {
    const channel = await funded();
    const crashing = open(undefined, {
      operate: async ({ note }) => {
        await note(Buffer.alloc(32, 0xdd));
        return { kind: 'unknown' };
      },
    });
    const { id, calldata } = await crashing.begin(channel);
    await crashing.operations.run();
    if (!calldata) throw new Error('no calldata');
    const hash = await stage.sender.sendTransaction({ to: SETTLEMENT, data: bytesToHex(calldata) });
    await stage.chain.waitForTransactionReceipt({ hash });
    await open().operations.run();
    const end = { state: 'done', amount: DEPOSIT, transaction: Buffer.from(hexToBytes(hash)) };
    expect(await store.operation(id)).toMatchObject(end);
    expect(bed.mined).toEqual([]);
  });

  test('that moves nothing is not taken for the refund before it', async () => {
    const channel = await funded();
    const first = open();
    const { id: done } = await first.begin(channel, PART);
    await first.operations.run();
    expect(await store.operation(done)).toMatchObject({ state: 'done', amount: PART });
    clock.aheadMs += PAUSE_MS;
    const finalize = await withdraw(channel, DEPOSIT - PART);
    const before = await stateOf(channel.id);
    // The process dies after the note. Its transaction is lost, and a third party sends the same.
    const crashing = open(readerAfter([before]), {
      operate: async ({ note }) => {
        await note(Buffer.alloc(32, 0xdd));
        return { kind: 'unknown' };
      },
    });
    const { id, calldata } = await crashing.begin(channel, PART);
    await crashing.operations.run();
    await finalize();
    const hash = await stage.sender.sendTransaction({ to: SETTLEMENT, data: bytesToHex(calldata ?? Buffer.alloc(0)) });
    await stage.chain.waitForTransactionReceipt({ hash });
    await open().operations.run();
    expect(await store.operation(id)).toMatchObject({ state: 'failed', reason: expect.stringContaining('nothing') });
  });

  test('stays open while the provider shows the channel from before it, and is not sent again', async () => {
    const channel = await funded();
    const before = await stateOf(channel.id);
    const { begin, operations } = open(readerAfter([before, before, before]));
    const { id } = await begin(channel);
    for (let round = 0; round < 2; round++) {
      await operations.run();
      expect(await store.operation(id)).toMatchObject({ state: 'open' });
    }
    await operations.run();
    expect(await store.operation(id)).toMatchObject({ state: 'done', amount: DEPOSIT });
    expect(await store.get(channel.id)).toMatchObject({ state: { balance: CALL, refundNonce: 1n } });
    expect(bed.mined.length).toBe(1);
  });

  test('that was sent and keeps failing is tried again after pauses that double, so that its gas is bounded', async () => {
    const channel = await funded();
    let tries = 0;
    const { begin, operations } = open(undefined, {
      operate: async ({ note }) => {
        tries++;
        await note(Buffer.alloc(32, 0xdd));
        return { kind: 'failed', reason: 'the transaction reverted' };
      },
    });
    const { id } = await begin(channel);
    const day = clock.nowMs() + 86_400_000;
    for (; clock.nowMs() < day; clock.aheadMs += 5 * 60_000) await operations.run();
    expect(tries).toBeLessThan(40);
    expect(tries).toBeGreaterThan(24);
    expect([alerts.length, await store.operation(id)]).toMatchObject([tries, { state: 'open' }]);
  });
});

describe('a request for a refund', () => {
  const refusal = (name: string) => ({ reason: PREFIX + name });

  test('of less than 0.1 USDC, or of a rest below 0.01 USDC, is refused and nothing is written', async () => {
    const [channel, small] = [await funded(), await funded()];
    const { ask, begin, operations } = open();
    for (const amount of [0n, 1n, PART - 1n, DEPOSIT + 1n])
      await expect(ask(channel, amount)).rejects.toMatchObject(refusal('refund_amount_invalid'));
    await begin(small, DEPOSIT - 9999n);
    await operations.run();
    clock.aheadMs += PAUSE_MS;
    await expect(ask(small)).rejects.toMatchObject(refusal('refund_no_balance'));
    await expect(ask(small, 9999n)).rejects.toMatchObject(refusal('refund_no_balance'));
    expect(await openRows()).toBe(0);
  });

  test('comes too soon when its channel was refunded a moment ago, or its payer has had three refunds in a day', async () => {
    const channel = await funded();
    const { ask, begin, operations } = open();
    for (let count = 0; count < 3; count++) {
      await begin(channel, PART);
      await operations.run();
      const pause = { status: 429, code: 'refund_too_soon', retryAfterSeconds: 600 };
      const last = await store.lastRefund(channel.id);
      const still = vi.spyOn(clock, 'nowMs').mockReturnValue(last?.endedAt ?? 0);
      await expect(ask(channel).finally(() => still.mockRestore())).rejects.toMatchObject(pause);
      clock.aheadMs += PAUSE_MS;
    }
    const refused = await ask(channel).catch((error: unknown) => error);
    const message = expect.stringContaining('the payer can also withdraw without us');
    expect(refused).toMatchObject({ status: 429, code: 'refund_too_soon', message });
    expect(Reflect.get(Object(refused), 'retryAfterSeconds')).toBeGreaterThan(80_000);
    clock.aheadMs += 86_400_000;
    await begin(channel);
    await operations.run();
    expect(await store.get(channel.id)).toMatchObject({ state: { balance: CALL, refundNonce: 4n } });
  });
});
