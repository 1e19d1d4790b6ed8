import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeFunctionData, encodeFunctionData, type Hex, keccak256, pad } from 'viem';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { artifacts, send } from '../../../dev/contracts.ts';
import { type Dex, DISTRIBUTOR } from '../../../dev/dex.ts';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { embeddedEnvironment } from '../../../dev/serve.ts';
import { createRandom, createSwaps } from '../../../dev/traffic.ts';
import type { BlockLog } from '../../../src/chain/block.ts';
import type { OpenChainClient } from '../../../src/chain/rpc/client.ts';
import type { LogScanner, WatchList } from '../../../src/collector/scanner.ts';
import { openChainDatabase } from '../../../src/collector/store/database.ts';
import { createTradeReads } from '../../../src/collector/store/trades.ts';
import { createChainWrites } from '../../../src/collector/store/writes.ts';
import { createTokenEventScanner } from '../../../src/collector/tokens.ts';
import { createTradeScanner } from '../../../src/collector/trades.ts';
import { loadConfig } from '../../../src/config.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import type { Sqlite } from '../../../src/lib/sqlite-file.ts';
import { openClient } from '../../support/chain/client.ts';

interface RawLog {
  address: Hex;
  topics: Hex[];
  data: Hex;
  blockNumber: Hex;
  logIndex: Hex;
  transactionHash: Hex;
}

const SWAPS = 80;
const SEED = 11;
const SENDER: Hex = `0x${'5e'.repeat(20)}`;
const DEAD: Hex = '0x000000000000000000000000000000000000dead';
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';

let network: EmbeddedNetwork;
let dex: Dex;
let watch: WatchList;
let chain: OpenChainClient;
let folder: string;
let db: Sqlite;
let head: number;
/** In the order in which they were mined, one per block. */
const swapped: Hex[] = [];

beforeAll(async () => {
  network = await startEmbeddedNetwork({ dex: true });
  dex = network.pools!;
  const config = loadConfig(embeddedEnvironment(network));
  watch = { ...config.watch, usdc: config.network.usdc };
  chain = openClient({ rpcUrls: [network.rpcUrl], chainId: network.chainId, timeoutMs: 60_000 });
  folder = mkdtempSync(join(tmpdir(), 'percall-fx-'));
  db = openChainDatabase(join(folder, 'chain.db'));
  await network.pauseMining();
  for (const account of [SENDER, DISTRIBUTOR]) {
    await network.rpc('anvil_impersonateAccount', [account]);
    await network.fundNative(account, 10n ** 21n);
    await network.fundUsdc(account, 10n ** 12n);
  }
  const [random, nextSwap] = [createRandom(SEED), createSwaps(dex)];
  for (let made = 0; made < SWAPS; made++) {
    swapped.push(await send(network.rpc, nextSwap(random, SENDER)));
    await network.mine();
  }
  head = Number(await network.rpc<Hex>('eth_blockNumber'));
  const scanner = scannerOn(db);
  // As at a first start: the filters contain the pools only after they were asked for.
  await collect(scanner, db, head, head);
  await collect(scanner, db, 1, head);
});
afterAll(async () => {
  await chain?.close();
  await network?.stop();
  db?.close();
  rmSync(folder, { recursive: true, force: true });
});

const hexOf = (value: number): Hex => `0x${value.toString(16)}`;

/** The result of eth_getLogs for the scanner's own filters. */
async function logsFor(scanner: LogScanner, from: number, to: number): Promise<BlockLog[]> {
  const found = new Map<string, BlockLog>();
  for (const { addresses, topics } of scanner.filters()) {
    const filter = { address: addresses, topics, fromBlock: hexOf(from), toBlock: hexOf(to) };
    for (const log of await network.rpc<RawLog[]>('eth_getLogs', [filter])) {
      const [block, logIndex] = [Number(log.blockNumber), Number(log.logIndex)];
      const { address, topics: places, data, transactionHash } = log;
      const entry = { block, logIndex, at: 1_800_000_000 + block, address, topics: places, data, transactionHash };
      found.set(`${block}/${logIndex}`, entry);
    }
  }
  return [...found.values()].sort((a, b) => a.block - b.block || a.logIndex - b.logIndex);
}

/** Scans blocks as the collector does. */
async function collect(scanner: LogScanner, into: Sqlite, from: number, to: number) {
  const span = { from, to, logs: await logsFor(scanner, from, to) };
  await scanner.prepare?.(span, chain, AbortSignal.timeout(60_000));
  createChainWrites(into).storeLogs(span, () => {
    const { trades = [], tokenEvents = [], pools = [] } = scanner.scan(span);
    return { trades, tokenEvents, pools };
  });
}

const scannerOn = (into: Sqlite) => createTradeScanner(watch, createTradeReads(into));

interface StoredTrade {
  block: bigint;
  hash: Uint8Array;
  pool: Uint8Array;
  token: Uint8Array;
  base: bigint;
  usdc: bigint;
  excluded: string | null;
}
const storedTrades = () =>
  db
    .prepare(
      `SELECT block, transaction_hash AS hash, pool, token, base_e9 AS base, usdc_e9 AS usdc, excluded
         FROM trades ORDER BY block, log_index`,
    )
    .safeIntegers()
    .all() as StoredTrade[];

/** Converts base units to 10^-9, rounding half up. Written separately from the code under test. */
const e9 = (amount: bigint, decimals: number) => {
  const scaled = amount * 10n ** 9n;
  const one = 10n ** BigInt(decimals);
  return scaled / one + ((scaled % one) * 2n >= one ? 1n : 0n);
};

const balanceAt = async (account: Hex, block: number) =>
  BigInt(await network.rpc<Hex>('eth_getBalance', [account, hexOf(block)]));

/**
 * The amounts of a swap's transaction, from the tokens' own Transfer logs. Native USDC logs nothing here, so its amount comes from the manager's
 * balance.
 */
async function recount(hash: Hex) {
  const receipt = await network.rpc<{ status: Hex; blockNumber: Hex; logs: RawLog[] }>('eth_getTransactionReceipt', [
    hash,
  ]);
  expect(receipt.status).toBe('0x1');
  const block = Number(receipt.blockNumber);
  const moved = (token: Hex) =>
    receipt.logs.filter(({ address, topics }) => address === token && topics[0] === TRANSFER);
  const [usdc, eurc, project] = [moved(network.usdc), moved(network.eurc), moved(network.projectToken)];
  const base = [...eurc, ...project];
  expect(base, 'one movement of the watched token').toHaveLength(1);
  const token = base[0]!.address;
  const baseE9 = e9(BigInt(base[0]!.data), token === network.eurc ? 6 : 18);
  expect(usdc.length).toBeLessThanOrEqual(1);
  if (usdc[0]) return { block, token, baseE9, usdcE9: e9(BigInt(usdc[0].data), 6) };
  const change = (await balanceAt(dex.poolManager, block)) - (await balanceAt(dex.poolManager, block - 1));
  return { block, token, baseE9, usdcE9: e9(change < 0n ? -change : change, 18) };
}

describe('of the trades that the collector stores', () => {
  test('each swap is one row, with the amounts of the tokens’ own logs', async () => {
    const rows = storedTrades();
    expect(rows).toHaveLength(SWAPS);
    for (const [at, hash] of swapped.entries()) {
      const { block, token, baseE9, usdcE9 } = await recount(hash);
      const row = rows[at]!;
      expect(bytesToHex(row.hash)).toBe(hash);
      expect(bytesToHex(row.token)).toBe(token);
      expect({ block: Number(row.block), base: row.base, usdc: row.usdc }, `swap ${at} of seed ${SEED}`).toEqual({
        block,
        base: baseE9,
        usdc: usdcE9,
      });
    }
  });

  test('every pool has swaps with an exact amount in or out, of dust and of large amounts', async () => {
    const ids = [dex.v2, dex.v3, dex.v4PoolId, dex.v4NativePoolId, dex.projectV2, dex.projectV3];
    const rows = storedTrades();
    expect(new Set(rows.map(({ pool }) => bytesToHex(pool)))).toEqual(new Set(ids));
    expect(rows.filter(({ excluded }) => excluded === 'dust').every(({ usdc }) => usdc < 10n ** 9n)).toBe(true);
    expect(rows.filter(({ usdc }) => usdc < 10n ** 9n).every(({ excluded }) => excluded === 'dust')).toBe(true);
    expect(rows.some(({ excluded }) => excluded === 'dust')).toBe(true);
    expect(rows.some(({ usdc }) => usdc > 10_000n * 10n ** 9n)).toBe(true);
    expect(rows.filter(({ excluded }) => excluded === 'outlier')).toEqual([]);
    const inputs = swapped.map((hash) => network.rpc<{ input: Hex }>('eth_getTransactionByHash', [hash]));
    const calls = (await Promise.all(inputs)).map(({ input }) =>
      decodeFunctionData({ abi: artifacts.Trader.abi, data: input }),
    );
    const amounts = calls.map(({ args }) => args?.at(-1) as bigint);
    expect(amounts.some((amount) => amount < 0n)).toBe(true);
    expect(amounts.some((amount) => amount > 0n)).toBe(true);
  });

  test('each price is the mean of the pool’s own prices before and after, within the fee', async () => {
    const seen = { bought: 0, sold: 0 };
    for (const { block, pool, base, usdc } of storedTrades()) {
      const id = bytesToHex(pool);
      const [before, after] = [await midPrice(id, Number(block) - 1), await midPrice(id, Number(block))];
      // In a constant-product pool the price without the fee is the geometric mean of the prices before and after.
      const off = Number(usdc) / Number(base) / Math.sqrt(before * after) - 1;
      const fee = [dex.v2, dex.projectV2, dex.projectV3].includes(id) ? 0.003 : 0.0005;
      // One base unit is some millionths of the smallest swaps.
      const rounding = 3000 / Math.min(Number(usdc), Number(base));
      expect(Math.abs(off), `block ${block}`).toBeLessThan(fee * 1.02 + rounding);
      seen[after > before ? 'bought' : 'sold'] += 1;
      if (rounding < fee / 10) expect(Math.sign(off), 'the fee is the trader’s loss').toBe(after > before ? 1 : -1);
    }
    expect(Math.min(seen.bought, seen.sold), JSON.stringify(seen)).toBeGreaterThan(10);
  });
});

/** USDC for a whole token, from the pool's state after a block. */
async function midPrice(id: Hex, block: number): Promise<number> {
  const call = (to: Hex, data: Hex) => network.rpc<Hex>('eth_call', [{ to, data }, hexOf(block)]);
  const wordOf = (answer: Hex, at: number) => BigInt(`0x${answer.slice(2 + at * 64, 2 + (at + 1) * 64)}`);
  let perFirst: number;
  if (id === dex.v2 || id === dex.projectV2) {
    const reserves = await call(id, '0x0902f1ac');
    perFirst = Number(wordOf(reserves, 1)) / Number(wordOf(reserves, 0));
  } else {
    const isV3 = id === dex.v3 || id === dex.projectV3;
    const slot = keccak256(`${id}${pad('0x06').slice(2)}`);
    const state = isV3 ? await call(id, '0x3850c7bd') : await call(dex.poolManager, `0x1e2eaeaf${slot.slice(2)}`);
    perFirst = (Number(wordOf(state, 0) & (2n ** 160n - 1n)) / 2 ** 96) ** 2;
  }
  if (id === dex.projectV2 || id === dex.projectV3) return perFirst * 1e12;
  return 1 / (id === dex.v4NativePoolId ? perFirst * 1e12 : perFirst);
}

test('the collector finds the same pools, whether it asks the contracts or reads events', async () => {
  const poolsOf = (from: Sqlite) =>
    from
      .prepare(
        'SELECT id, venue, kind, emitter, token, token_first, token_decimals, usdc_decimals FROM pools ORDER BY id',
      )
      .all();
  const known = poolsOf(db);
  expect(known).toHaveLength(6);
  const other = openChainDatabase(join(folder, 'events.db'));
  try {
    // When the venues' contracts cannot be asked, the events alone give the pools.
    const scanner = scannerOn(other);
    const span = { from: 1, to: 6, logs: await logsFor(scanner, 1, 6) };
    const mute = { ...chain, batch: muteVenues() };
    await scanner.prepare?.(span, mute, AbortSignal.timeout(60_000));
    const { pools = [] } = scanner.scan(span);
    createChainWrites(other).storeLogs(span, () => ({ trades: [], tokenEvents: [], pools }));
    expect(pools).toHaveLength(6);
    expect(poolsOf(other)).toEqual(known);
  } finally {
    other.close();
  }
});

/** The chain client with every call to a venue refused, as by a node without the state. */
function muteVenues(): OpenChainClient['batch'] {
  const venues = new Set<string>(watch.venues.map(({ address }) => address));
  return async (calls, options) => {
    const outcomes = await chain.batch(calls, options);
    return outcomes.map((outcome, at) => {
      const [target] = (calls[at]?.params ?? []) as { to?: string }[];
      return venues.has(target?.to ?? '') ? { result: '0x' } : outcome;
    });
  };
}

test('the collector reads burns of the project token and the distributor’s payouts, and nothing else', async () => {
  const { abi } = artifacts.Token;
  const transfer = (from: Hex, to: Hex, recipient: Hex, amount: bigint) =>
    send(network.rpc, {
      from,
      to,
      data: encodeFunctionData({ abi, functionName: 'transfer', args: [recipient, amount] }),
    });
  const from = head + 2;
  const mint = encodeFunctionData({ abi, functionName: 'mint', args: [SENDER, 10n ** 20n] });
  await send(network.rpc, { from: SENDER, to: network.projectToken, data: mint });
  await network.mine();
  await transfer(SENDER, network.projectToken, DEAD, 3n * 10n ** 18n);
  await transfer(SENDER, network.projectToken, network.seller, 4n);
  await transfer(DISTRIBUTOR, network.usdc, network.seller, 5_000_000n);
  await transfer(SENDER, network.usdc, network.seller, 6n);
  await network.mine();
  await collect(createTokenEventScanner(watch), db, from, from);
  expect(db.prepare('SELECT block, kind, account, amount FROM token_events ORDER BY log_index').all()).toEqual([
    { block: from, kind: 'burn', account: Buffer.from(SENDER.slice(2), 'hex'), amount: String(3n * 10n ** 18n) },
    { block: from, kind: 'payout', account: Buffer.from(network.seller.slice(2), 'hex'), amount: '5000000' },
  ]);
});
