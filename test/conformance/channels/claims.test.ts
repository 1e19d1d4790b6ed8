import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { privateKeyToAccount } from 'viem/accounts';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../src/embedded/network.ts';
import { systemClock as clock } from '../../../src/lib/clock.ts';
import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import { createChannelReader } from '../../../src/payment/rails/usdc-channels/channel-reader.ts';
import { createClaims } from '../../../src/payment/rails/usdc-channels/claims.ts';
import { SETTLEMENT } from '../../../src/payment/rails/usdc-channels/scheme.ts';
import type { ChannelStore } from '../../../src/store/ports/channels.ts';
import { createChannelStore } from '../../../src/store/sqlite/channel-store.ts';
import { openLedgerDatabase, type Sqlite } from '../../../src/store/sqlite/database.ts';
import { type ChainChannel, createChainChannels } from '../../support/channels/chain-channels.ts';
import { createChannelStage } from '../../support/channels/channel-contract.ts';
import { scheme } from '../../support/channels/channel-payment.ts';
import { voucherSale } from '../../support/ledger/channel-rows.ts';
import { openChainRelayer } from '../../support/usdc/chain-relayer.ts';

// Claims of payment channels: the real ledger, the real relayer, the contract on a real node.

const NETWORK = 'eip155:5042';
const DEPOSIT = 1_000_000n;
const LIMITS = { threshold: 1000n, ageMs: 3_600_000 };
const { signal } = new AbortController();
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
let claims: ReturnType<typeof createClaims>;
beforeEach(async () => {
  channels = createChainChannels(network, { withdrawDelay: 900 });
  bed = await openChainRelayer(network);
  folder = mkdtempSync(join(tmpdir(), 'claims-'));
  db = openLedgerDatabase(join(folder, 'ledger.db'));
  store = createChannelStore(db);
  alerts = [];
  claims = open();
});
afterEach(async () => {
  await bed.close();
  db.close();
  rmSync(folder, { recursive: true });
});

function open(relayer: Pick<typeof bed.relayer, 'operate'> = bed.relayer) {
  return createClaims({
    ...{ store, relayer, reader: createChannelReader(bed.chain), chain: bed.chain, scheme, clock, limits: LIMITS },
    ...{ receiver: channels.receiver, token: channels.token, authorizerKey: channels.authorizer.privateKey },
    ...{ network: NETWORK, sender: bed.wallet.address },
    log: { warn: (_, message) => alerts.push(message), error: (_, message) => alerts.push(message) },
  });
}

const reader = () => createChannelReader(bed.chain);
const noted = async ({ id }: ChainChannel) => {
  const found = await store.get(id);
  if (!found) throw new Error('the channel is not in the ledger');
  return found;
};
const recorded = async (channel: ChainChannel) => (await reader().read([channel.id]))[0]?.totalClaimed;
const earned = () => stage.usdcOf(bytesToHex(channels.receiver));

/** Channels with a deposit, known to the ledger. */
async function funded(count: number): Promise<ChainChannel[]> {
  const opened = await Promise.all(Array.from({ length: count }, () => channels.open(DEPOSIT)));
  const outcomes = await Promise.all(bed.relayer.settle(opened.map((channel) => channel.deposit(DEPOSIT))));
  expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['settled']));
  for (const channel of opened) await note(channel);
  bed.mined.length = 0;
  return opened;
}
async function note({ id, config }: ChainChannel): Promise<void> {
  const [state] = await reader().read([id]);
  if (state) await store.note({ ...config, id, network: NETWORK }, state, clock.nowMs());
}
/** Charges a channel by one voucher up to `max`. */
async function charge(channel: ChainChannel, max: bigint, signature = channel.signVoucher(max)): Promise<void> {
  const { charged } = await noted(channel);
  const price = max - charged;
  const id = randomUUID();
  const sale = voucherSale(id, id, max, { price, amount: price });
  expect(await store.charge({ ...sale, channel: { channelId: channel.id, max, signature } }, new Uint8Array(), 0)).toBe(
    true,
  );
}
async function reconciled(): Promise<{ charged: bigint; claimed: bigint; writtenOff: bigint; claimable: bigint }> {
  const totals = await store.totals(NETWORK);
  const unclaimed = await store.listUnclaimed(NETWORK, 1000);
  const claimable = unclaimed.reduce(
    (sum, { charged, writtenOff, state }) => sum + charged - writtenOff - state.totalClaimed,
    0n,
  );
  expect(totals.charged).toBe(totals.claimed + totals.writtenOff + claimable);
  return { ...totals, claimable };
}

describe('a round of claims', () => {
  test('records what a hundred channels were charged and pays it out, in one transaction and to the unit', async () => {
    const opened = await funded(100);
    for (const [at, channel] of opened.entries()) await charge(channel, 5000n + BigInt(at));
    const report = await claims.run(false, signal);
    const sum = 500_000n + 4950n;
    expect(report).toEqual({ claimed: sum, writtenOff: 0n, setAside: 0 });
    expect([bed.mined.length, await earned()]).toEqual([1, sum]);
    process.stderr.write(`gas of a claim of 100 channels with its sweep: ${bed.mined[0]?.gasUsed}\n`);
    expect(await reconciled()).toEqual({ charged: sum, claimed: sum, writtenOff: 0n, claimable: 0n });
    expect([await store.openOperations(10), alerts]).toEqual([[], []]);
  }, 60_000);

  test('takes the channels that are worth it and leaves the others, which a command claims too', async () => {
    const [small, large] = await funded(2);
    if (!small || !large) throw new Error('no channels');
    await charge(small, 999n);
    await charge(large, 1000n);
    expect((await claims.run(false, signal)).claimed).toBe(1000n);
    expect(await reconciled()).toMatchObject({ claimed: 1000n, claimable: 999n });
    expect((await claims.run(true, signal)).claimed).toBe(999n);
    expect(await reconciled()).toMatchObject({ claimed: 1999n, claimable: 0n });
    expect(await claims.run(true, signal)).toEqual({ claimed: 0n, writtenOff: 0n, setAside: 0 });
  });

  test('takes a channel whose payer wants its money back, however little was charged', async () => {
    const [channel] = await funded(1);
    if (!channel) throw new Error('no channel');
    await charge(channel, 1n);
    await withdraw(channel, 5n);
    await note(channel);
    expect((await claims.run(false, signal)).claimed).toBe(1n);
  });

  test('claims the newest sum of a channel that was claimed before, and never more', async () => {
    const [channel] = await funded(1);
    if (!channel) throw new Error('no channel');
    for (const max of [2000n, 3500n, 9000n]) {
      await charge(channel, max);
      await claims.run(false, signal);
      expect(await recorded(channel)).toBe(max);
    }
    expect(await earned()).toBe(9000n);
  });

  test('sets a row that the contract refuses aside, and claims all others', async () => {
    const opened = await funded(9);
    for (const [at, channel] of opened.entries())
      await charge(channel, 2000n, at === 4 ? Buffer.alloc(65, 1) : channel.signVoucher(2000n));
    expect(await claims.run(false, signal)).toEqual({ claimed: 16_000n, writtenOff: 0n, setAside: 1 });
    expect(alerts).toEqual(['a payment channel cannot be claimed']);
    expect(await claims.run(false, signal)).toEqual({ claimed: 0n, writtenOff: 0n, setAside: 0 });
    const poisoned = opened[4];
    if (!poisoned) throw new Error('no channel');
    // A new voucher is a new row.
    await charge(poisoned, 3000n);
    expect(await claims.run(false, signal)).toEqual({ claimed: 3000n, writtenOff: 0n, setAside: 0 });
    expect(await reconciled()).toMatchObject({ claimed: 19_000n, claimable: 0n });
  });

  test('writes off what a completed withdrawal has taken, claims the rest, and reconciles to the unit', async () => {
    const [channel] = await funded(1);
    if (!channel) throw new Error('no channel');
    await charge(channel, 400_000n);
    await withdraw(channel, 700_000n);
    await network.rpc('evm_increaseTime', [901]);
    await network.rpc('evm_mine', []);
    await stage.call('finalizeWithdraw', [structOf(channel)], await payerOf(channel));
    expect(await claims.run(false, signal)).toEqual({ claimed: 300_000n, writtenOff: 100_000n, setAside: 0 });
    expect(await reconciled()).toEqual({ charged: 400_000n, claimed: 300_000n, writtenOff: 100_000n, claimable: 0n });
    expect(alerts).toEqual(['charges of a payment channel are written off: its balance is gone']);
  });

  test('of two that are asked for at once, the second waits and claims nothing twice', async () => {
    const [channel] = await funded(1);
    if (!channel) throw new Error('no channel');
    await charge(channel, 2000n);
    const reports = await Promise.all([claims.run(true, signal), claims.run(true, signal)]);
    expect(reports.map(({ claimed }) => claimed)).toEqual([2000n, 0n]);
    expect([bed.mined.length, await earned()]).toEqual([1, 2000n]);
  });
});

describe('after a crash, an open claim', () => {
  /** A claim that is begun and whose process dies at this step. */
  async function crashed(at: 'before the note' | 'after the transaction') {
    const [channel] = await funded(1);
    if (!channel) throw new Error('no channel');
    await charge(channel, 2000n);
    await open({
      operate: async (operation) => {
        if (at === 'before the note') return { kind: 'unknown' };
        const hash = await stage.sender.sendTransaction({ to: SETTLEMENT, data: bytesToHex(operation.data) });
        await operation.note(hexToBytes(hash));
        await stage.chain.waitForTransactionReceipt({ hash });
        return { kind: 'unknown' };
      },
    }).run(true, signal);
    const [row] = await store.openOperations(10);
    if (!row) throw new Error('no open claim');
    return { channel, row };
  }

  test('that was never sent is sent, once', async () => {
    const { channel, row } = await crashed('before the note');
    await claims.run(true, signal);
    expect([await recorded(channel), await earned(), bed.mined.length]).toEqual([2000n, 2000n, 1]);
    expect(await store.operation(row.id)).toMatchObject({ state: 'done', amount: 2000n, calldata: null });
  });

  test('that the chain shows is ended by its event, and nothing is sent', async () => {
    const { row } = await crashed('after the transaction');
    await claims.run(true, signal);
    expect(await store.operation(row.id)).toMatchObject({ state: 'done', amount: 2000n, transaction: row.transaction });
    expect([bed.mined, await reconciled()]).toMatchObject([[], { claimed: 2000n, claimable: 0n }]);
  });
});

/** A wallet of the channel's payer, with gas. */
const payerOf = async ({ privateKey }: ChainChannel) => stage.walletOf(privateKeyToAccount(bytesToHex(privateKey)));
const structOf = ({ config }: ChainChannel) =>
  Object.fromEntries(
    Object.entries(config).map(([name, value]) => [name, value instanceof Uint8Array ? bytesToHex(value) : value]),
  );
async function withdraw(channel: ChainChannel, amount: bigint): Promise<void> {
  await stage.call('initiateWithdraw', [structOf(channel), amount], await payerOf(channel));
}
