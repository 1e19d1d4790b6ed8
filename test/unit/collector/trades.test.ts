import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { BlockLog } from '../../../src/chain/block.ts';
import { CREATION_TOPIC, type PoolKind, SWAP_TOPIC, SYNC_TOPIC } from '../../../src/chain/dex.ts';
import type { OpenChainClient } from '../../../src/chain/rpc/client.ts';
import type { LogScanner, ScanWrites, WatchList } from '../../../src/collector/scanner.ts';
import { openChainDatabase } from '../../../src/collector/store/database.ts';
import { createTradeReads } from '../../../src/collector/store/trades.ts';
import { type ChainWrites, createChainWrites } from '../../../src/collector/store/writes.ts';
import { createTradeScanner } from '../../../src/collector/trades.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import type { Sqlite } from '../../../src/lib/sqlite-file.ts';
import { openClient } from '../../support/chain/client.ts';
import { RpcFault, type RpcServer, startRpcServer } from '../../support/chain/rpc-server.ts';

type Hex = `0x${string}`;
const repeat = (byte: string): Hex => `0x${byte.repeat(20)}`;
const USDC: Hex = '0x3600000000000000000000000000000000000000';
const EURC: Hex = '0xbef5f6d51cb62b58e6a8f77868681825c6fe21c1';
/** Below USDC's address, so that it comes first in its pools. */
const COIN: Hex = repeat('11');
const NATIVE: Hex = repeat('00');
const V2 = repeat('f2');
const V3 = repeat('f3');
const V4 = repeat('f4');
const AERO = repeat('f5');
const WATCH: WatchList = {
  tokens: [
    { symbol: 'EURC', address: EURC },
    { symbol: 'COIN', address: COIN },
  ],
  venues: [
    { kind: 'v2', address: V2, name: 'Two' },
    { kind: 'v3', address: V3, name: 'Three' },
    { kind: 'v4', address: V4, name: 'Four' },
    { kind: 'slipstream', address: AERO, name: 'Aero' },
  ],
  usdc: USDC,
  projectToken: null,
  distributor: null,
  burnAddresses: [],
  dustE9: 1_000_000_000n,
  outlierPercent: 20,
};

const word = (value: string | bigint) =>
  typeof value === 'string'
    ? value.slice(2).padStart(64, '0')
    : BigInt.asUintN(256, value).toString(16).padStart(64, '0');
const data = (...values: (string | bigint)[]): Hex => `0x${values.map(word).join('')}`;
const topic = (value: string | bigint): Hex => `0x${word(value)}`;

/** Numbers the logs: each is of a transaction of its own. */
let count = 0;
const logOf = (block: number, address: Hex, topics: readonly Hex[], content: Hex): BlockLog => ({
  block,
  at: 1_000_000 + block,
  logIndex: count++,
  transactionHash: topic(BigInt(count)),
  address,
  topics,
  data: content,
});

const ID = (byte: string): Hex => `0x${byte.repeat(32)}`;
const create = {
  v2: (block: number, token0: Hex, token1: Hex, pool: Hex, factory = V2) =>
    logOf(block, factory, [CREATION_TOPIC.v2, topic(token0), topic(token1)], data(pool, 1n)),
  v3: (block: number, token0: Hex, token1: Hex, pool: Hex) =>
    logOf(block, V3, [CREATION_TOPIC.v3, topic(token0), topic(token1), topic(500n)], data(10n, pool)),
  slipstream: (block: number, token0: Hex, token1: Hex, pool: Hex) =>
    logOf(block, AERO, [CREATION_TOPIC.slipstream, topic(token0), topic(token1), topic(50n)], data(pool)),
  v4: (block: number, token0: Hex, token1: Hex, id: Hex, hooks = NATIVE) =>
    logOf(block, V4, [CREATION_TOPIC.v4, id, topic(token0), topic(token1)], data(500n, 10n, hooks, 1n, 0n)),
};
/** The Swap event of these deltas of the pool, as its kind of pool writes it. */
function swap(kind: PoolKind, block: number, emitter: Hex, amount0: bigint, amount1: bigint, id?: Hex): BlockLog {
  const inOf = (amount: bigint) => (amount > 0n ? amount : 0n);
  if (kind === 'v2') {
    const amounts = data(inOf(amount0), inOf(amount1), inOf(-amount0), inOf(-amount1));
    return logOf(block, emitter, [SWAP_TOPIC.v2, topic(V2), topic(V2)], amounts);
  }
  if (kind === 'v4') {
    return logOf(
      block,
      emitter,
      [SWAP_TOPIC.v4, id ?? topic(0n), topic(V4)],
      data(-amount0, -amount1, 1n, 1n, 0n, 500n),
    );
  }
  return logOf(block, emitter, [SWAP_TOPIC[kind], topic(V3), topic(V3)], data(amount0, amount1, 1n, 1n, 0n));
}

const DECIMALS: Record<string, bigint> = { [USDC]: 6n, [EURC]: 6n, [COIN]: 18n };
let server: RpcServer;
let chain: OpenChainClient;
let folder: string;
let db: Sqlite;
let writes: ChainWrites;
let scanner: LogScanner;
const warnings: string[] = [];
/** What the venues answer when they are asked for a pool, by the call's data. */
let existing: Record<string, Hex>;

beforeEach(async () => {
  existing = {};
  warnings.length = 0;
  server = await startRpcServer({
    eth_blockNumber: () => '0x64',
    eth_call: ([call]) => {
      const { to, data: input } = call as { to: string; data: string };
      if (input === '0x313ce567' && to in DECIMALS) return topic(DECIMALS[to]!);
      if (input in existing) return existing[input];
      if (input.length > 10) return topic(0n);
      throw new RpcFault(3, 'execution reverted');
    },
  });
  chain = openClient({ rpcUrls: [server.url], chainId: 5042, timeoutMs: 30_000 });
  folder = mkdtempSync(join(tmpdir(), 'percall-trades-'));
  db = openChainDatabase(join(folder, 'chain.db'));
  writes = createChainWrites(db);
  scanner = newScanner();
});
afterEach(async () => {
  db.close();
  rmSync(folder, { recursive: true, force: true });
  await chain.close();
  await server.stop();
});

const newScanner = (watch = WATCH) =>
  createTradeScanner(watch, createTradeReads(db), { warn: (_, message) => warnings.push(message) });

/** Does what the collector does: prepares, then scans and stores in one transaction. */
async function take(logs: BlockLog[], from = logs[0]?.block ?? 0, to = logs.at(-1)?.block ?? 0): Promise<ScanWrites> {
  const span = { from, to, logs };
  await scanner.prepare?.(span, chain, AbortSignal.timeout(60_000));
  let made: ScanWrites = {};
  writes.storeLogs({ from, to }, () => {
    made = scanner.scan(span);
    return { trades: made.trades ?? [], tokenEvents: [], pools: made.pools ?? [] };
  });
  return made;
}

interface Stored {
  pool: Uint8Array;
  venue: string;
  base: bigint;
  usdc: bigint;
  excluded: string | null;
}
const stored = () =>
  db
    .prepare(
      `SELECT t.pool, p.venue, t.base_e9 AS base, t.usdc_e9 AS usdc, t.excluded
         FROM trades t JOIN pools p ON p.id = t.pool AND p.token = t.token ORDER BY t.block, t.log_index`,
    )
    .safeIntegers()
    .all() as Stored[];

const E9 = 10n ** 9n;
const MICRO = 10n ** 6n;

describe('swaps of every kind, both orders and both directions', () => {
  const POOLS: readonly { kind: PoolKind; token0: Hex; token1: Hex; venue: string; pool: Hex; id?: Hex }[] = [
    { kind: 'v2', token0: USDC, token1: EURC, venue: 'Two', pool: repeat('a1') },
    { kind: 'v2', token0: COIN, token1: USDC, venue: 'Two', pool: repeat('a2') },
    { kind: 'v3', token0: USDC, token1: EURC, venue: 'Three', pool: repeat('a3') },
    { kind: 'v3', token0: COIN, token1: USDC, venue: 'Three', pool: repeat('a4') },
    { kind: 'slipstream', token0: USDC, token1: EURC, venue: 'Aero', pool: repeat('a5') },
    { kind: 'slipstream', token0: COIN, token1: USDC, venue: 'Aero', pool: repeat('a6') },
    { kind: 'v4', token0: USDC, token1: EURC, venue: 'Four', pool: V4, id: ID('b1') },
    { kind: 'v4', token0: COIN, token1: USDC, venue: 'Four', pool: V4, id: ID('b2') },
    { kind: 'v4', token0: NATIVE, token1: EURC, venue: 'Four', pool: V4, id: ID('b3') },
    { kind: 'v4', token0: NATIVE, token1: COIN, venue: 'Four', pool: V4, id: ID('b4') },
  ];

  test.each(POOLS)('$kind $token0 / $token1', async ({ kind, token0, token1, venue, pool, id }) => {
    const unitOf = (token: Hex) => 10n ** (token === NATIVE ? 18n : (DECIMALS[token] ?? 0n));
    const isBase = (token: Hex) => token === EURC || token === COIN;
    const amountOf = (token: Hex) => (isBase(token) ? 200n : 234n) * unitOf(token);
    const [amount0, amount1] = [amountOf(token0), amountOf(token1)];
    await take([
      kind === 'v4' ? create.v4(5, token0, token1, id!) : create[kind](5, token0, token1, pool),
      swap(kind, 6, pool, amount0, -amount1, id),
      swap(kind, 7, pool, -amount0, amount1, id),
    ]);
    const trade = { venue, base: 200n * E9, usdc: 234n * E9, excluded: null };
    expect(stored()).toMatchObject([trade, trade]);
    expect(bytesToHex(stored()[0]!.pool)).toBe(id ?? pool);
  });
});

describe('the pool beside a trade', () => {
  const priced = () =>
    db
      .prepare(
        'SELECT side, price_before AS before, price_after AS after, usdc_reserve AS reserve FROM trades ORDER BY block',
      )
      .all();
  const [usdc, eurc] = [1165n * MICRO, 1000n * MICRO];

  test('v2: the Sync right before the swap says the price before and after it', async () => {
    const pool = repeat('a1');
    const sync = (block: number, reserve0: bigint, reserve1: bigint) =>
      logOf(block, pool, [SYNC_TOPIC], data(reserve0 * MICRO, reserve1 * MICRO));
    await take([
      create.v2(5, USDC, EURC, pool),
      // Liquidity that is added writes one too, and no swap follows it.
      sync(5, 10n, 10n),
      ...[sync(6, 1_165_000n, 1_000_000n), swap('v2', 6, pool, usdc, -eurc)],
      ...[sync(7, 1_163_835n, 1_001_000n), swap('v2', 7, pool, -usdc, eurc)],
    ]);
    expect(priced()).toEqual([
      { side: 'buy', before: 1_163_835 / 1_001_000, after: 1.165, reserve: 1_165_000 },
      { side: 'sell', before: 1.165, after: 1_163_835 / 1_001_000, reserve: 1_163_835 },
    ]);
  });

  test('v2: a Sync of another pair, or one that another log follows, says nothing', async () => {
    const [pool, other] = [repeat('a1'), repeat('a9')];
    const sync = (address: Hex) => logOf(6, address, [SYNC_TOPIC], data(1_165_000n * MICRO, 1_000_000n * MICRO));
    const before = sync(pool);
    count += 1;
    await take([create.v2(5, USDC, EURC, pool), before, swap('v2', 6, pool, usdc, -eurc)]);
    await take([sync(other), swap('v2', 7, pool, usdc, -eurc)], 7, 7);
    expect(priced()).toMatchObject([
      { side: 'buy', before: null, after: null },
      { side: 'buy', before: null, after: null },
    ]);
  });

  test.each(['v3', 'slipstream', 'v4'] as const)(
    '%s: the price before is that after the swap before it',
    async (kind) => {
      const [pool, id] = kind === 'v4' ? [V4, ID('b1')] : [repeat('a3'), undefined];
      const creation = kind === 'v4' ? create.v4(5, USDC, EURC, ID('b1')) : create[kind](5, USDC, EURC, pool);
      // In Q64.96, with USDC first: half a token for a USDC, then a quarter.
      const [half, quarter] = [2n ** 96n, 2n ** 95n];
      const at = (block: number, root: bigint, sign: bigint) => {
        const made = swap(kind, block, pool, sign * usdc, -sign * eurc, id);
        const words = made.data.slice(2).match(/.{64}/g) ?? [];
        const content = [...words.slice(0, 2), word(root), word(10n ** 12n), ...words.slice(4)].join('');
        return { ...made, data: `0x${content}` as Hex };
      };
      await take([creation, at(6, half, 1n)], 5, 6);
      await take([at(7, quarter, 1n)], 7, 7);
      await take([at(8, half, -1n)], 8, 8);
      expect(priced()).toEqual([
        { side: 'buy', before: null, after: 1, reserve: 1_000_000 },
        { side: 'buy', before: 1, after: 4, reserve: 2_000_000 },
        { side: 'sell', before: 4, after: 1, reserve: 1_000_000 },
      ]);
    },
  );
});

test('a log with an unknown pool, emitter, pool id or kind is no trade', async () => {
  const pool = repeat('a3');
  const id = ID('b1');
  await take([create.v3(5, USDC, EURC, pool), create.v4(5, USDC, EURC, id)]);
  const [a, b] = [116n * MICRO, -100n * MICRO];
  await take(
    [
      swap('v3', 6, repeat('ee'), a, b),
      swap('v4', 6, repeat('ee'), a, b, id),
      swap('v4', 6, V4, a, b, ID('99')),
      swap('v2', 6, pool, a, b),
      logOf(6, id.slice(0, 42) as Hex, [SWAP_TOPIC.v3, topic(V3), topic(V3)], data(a, b, 1n, 1n, 0n)),
    ],
    6,
    6,
  );
  expect(stored()).toEqual([]);
  await take([swap('v3', 7, pool, a, b), swap('v4', 7, V4, a, b, id)]);
  expect(stored()).toHaveLength(2);
});

test('only pools of a watched token against USDC from a configured factory count', async () => {
  const { pools } = await take([
    create.v2(5, EURC, repeat('cc'), repeat('a1')),
    create.v2(5, COIN, EURC, repeat('a2')),
    create.v2(5, USDC, repeat('cc'), repeat('a3')),
    create.v2(5, USDC, EURC, repeat('a4'), repeat('ee')),
    create.v2(5, NATIVE, EURC, repeat('a5')),
    create.v4(5, USDC, EURC, ID('b1'), `0x${'ab'.repeat(18)}0044`),
    create.v2(5, USDC, EURC, repeat('a6')),
  ]);
  expect(pools?.map(({ id }) => bytesToHex(id))).toEqual([repeat('a6')]);
});

test('scanning the same blocks again, in other spans too, leaves the same rows', async () => {
  const pool = repeat('a3');
  const logs = [create.v3(5, USDC, EURC, pool)];
  for (let block = 6; block < 40; block++) {
    const price = block % 11 === 0 ? 900n : 116n + (BigInt(block) % 3n);
    logs.push(swap('v3', block, pool, price * MICRO, -100n * MICRO));
  }
  await take(logs);
  const rows = stored();
  expect(rows.filter(({ excluded }) => excluded === 'outlier')).toHaveLength(3);
  await take(logs);
  expect(stored()).toEqual(rows);
  await take(
    logs.filter(({ block }) => block >= 30),
    30,
    39,
  );
  await take(
    logs.filter(({ block }) => block >= 12 && block < 20),
    12,
    19,
  );
  expect(stored()).toEqual(rows);
});

test('dust and outliers are stored with their reason, each token compared with its own prices', async () => {
  const [eurc, coin] = [repeat('a3'), repeat('a4')];
  const logs = [create.v3(5, USDC, EURC, eurc), create.v3(5, COIN, USDC, coin)];
  for (let block = 6; block < 12; block++) {
    logs.push(swap('v3', block, eurc, 116n * MICRO, -100n * MICRO));
    logs.push(swap('v3', block, coin, 1000n * 10n ** 18n, -50n * MICRO));
  }
  await take(logs);
  await take([
    swap('v3', 12, eurc, -999_999n, 860_000n),
    swap('v3', 12, coin, -1000n * 10n ** 18n, 116_000n * MICRO),
    swap('v3', 12, coin, -1000n * 10n ** 18n, 51n * MICRO),
  ]);
  expect(
    stored()
      .slice(-3)
      .map(({ excluded }) => excluded),
  ).toEqual(['dust', 'outlier', null]);
});

describe('new trades are compared with stored ones', () => {
  const pool = repeat('a3');
  const at = (block: number, price: bigint, units = 100n) =>
    swap('v3', block, pool, price * units * 10n ** 4n, -units * MICRO);
  const blocks = (from: number, to: number, price: bigint, units?: bigint) =>
    Array.from({ length: to - from }, (_, index) => at(from + index, price, units));
  const verdictOf = async (log: BlockLog) => {
    await take([log]);
    return stored().at(-1)?.excluded;
  };

  test('with the nearest before them, not the oldest', async () => {
    await take([create.v3(5, USDC, EURC, pool), ...blocks(6, 80, 50n), ...blocks(80, 160, 100n)]);
    expect(await verdictOf(at(161, 100n))).toBeNull();
    expect(await verdictOf(at(162, 50n))).toBe('outlier');
  });

  test('with those before them rather than those after', async () => {
    await take([create.v3(5, USDC, EURC, pool), ...blocks(6, 30, 100n), ...blocks(40, 120, 150n)]);
    await take([at(35, 100n), at(36, 150n)], 35, 36);
    expect(
      stored()
        .slice(24, 26)
        .map(({ excluded }) => excluded),
    ).toEqual([null, 'outlier']);
  });

  test('and dust among them has no vote', async () => {
    await take([create.v3(5, USDC, EURC, pool), ...blocks(6, 30, 100n), ...blocks(30, 120, 4n, 1n)]);
    expect(stored().at(-1)?.excluded).toBe('dust');
    expect(await verdictOf(at(121, 100n))).toBeNull();
    expect(await verdictOf(at(122, 4n))).toBe('outlier');
  });

  test('and outliers among them have a vote, so that a lasting jump is accepted', async () => {
    await take([create.v3(5, USDC, EURC, pool), ...blocks(6, 60, 100n)]);
    const verdicts: unknown[] = [];
    for (let block = 60; block < 75; block++) verdicts.push(await verdictOf(at(block, 200n)));
    expect(verdicts).toEqual([...Array(11).fill('outlier'), ...Array(4).fill(null)]);
  });
});

describe('the filters', () => {
  const firstTopics = () => [...new Set(scanner.filters().flatMap(({ topics }) => topics[0] ?? []))].sort();

  test('name at most eight alternatives in each position, always an address, and always the same first topics', async () => {
    const before = firstTopics();
    expect(before).toEqual(
      [...new Set([...Object.values(SWAP_TOPIC), ...Object.values(CREATION_TOPIC), SYNC_TOPIC])].sort(),
    );
    await take(
      Array.from({ length: 40 }, (_, at) => create.v4(5, USDC, at % 2 ? EURC : COIN, ID((10 + at).toString(16)))),
    );
    expect(firstTopics()).toEqual(before);
    for (const { addresses, topics } of scanner.filters()) {
      expect(addresses.length).toBeGreaterThan(0);
      expect(topics[0]).not.toBeNull();
      for (const place of topics) expect([place ?? []].flat().length).toBeLessThanOrEqual(8);
    }
    const ids = scanner.filters().filter(({ topics }) => topics[0] === SWAP_TOPIC.v4);
    expect(
      ids.flatMap(({ topics }) => topics[1] ?? []),
      'sixteen pools a token',
    ).toHaveLength(32);
    expect(ids).toHaveLength(4);
  });

  test('with more watched tokens than a filter may name, name any token, and the scanner filters the logs itself', async () => {
    const tokens = Array.from({ length: 9 }, (_, at) => ({ symbol: `T${at}`, address: repeat(`2${at}`) }));
    scanner = newScanner({ ...WATCH, tokens });
    for (const { topics } of scanner.filters().slice(0, 2))
      expect(topics.slice(1).every((place) => place === null)).toBe(true);
  });

  test('of a scanner without tokens are none', async () => {
    scanner = newScanner({ ...WATCH, tokens: [] });
    await take([create.v2(5, USDC, EURC, repeat('a1'))]);
    expect(server.count('eth_call')).toBe(0);
    expect(stored()).toEqual([]);
  });

  test('the key changes with the watch list, and not with its order', () => {
    expect(newScanner({ ...WATCH, tokens: WATCH.tokens.toReversed() }).key).toBe(scanner.key);
    expect(newScanner({ ...WATCH, tokens: WATCH.tokens.slice(1) }).key).not.toBe(scanner.key);
    expect(newScanner({ ...WATCH, venues: WATCH.venues.slice(1) }).key).not.toBe(scanner.key);
    expect(newScanner({ ...WATCH, dustE9: 2n }).key).not.toBe(scanner.key);
  });
});

describe('pools found in the background', () => {
  test('make the blocks above them be scanned again, once', async () => {
    await take([], 20, 30);
    const found = await take([create.v3(5, USDC, EURC, repeat('a3'))], 5, 19);
    expect(found.rescanFrom).toBe(5);
    const again = await take([create.v3(5, USDC, EURC, repeat('a3'))], 5, 19);
    expect(again).toMatchObject({ pools: [], trades: [] });
    expect(again.rescanFrom).toBeUndefined();
  });

  test('are reported until the database has them, because a span may not have been stored', async () => {
    const span = { from: 5, to: 5, logs: [create.v3(5, USDC, EURC, repeat('a3'))] };
    await scanner.prepare?.(span, chain, AbortSignal.timeout(60_000));
    expect(scanner.scan(span).pools).toHaveLength(1);
    await scanner.prepare?.(span, chain, AbortSignal.timeout(60_000));
    expect(scanner.scan(span)).toMatchObject({ rescanFrom: 5, pools: [{ foundBlock: 5 }] });
  });

  test('are known to the next process from the database', async () => {
    await take([create.v4(5, NATIVE, EURC, ID('b3'))]);
    scanner = newScanner();
    await take([swap('v4', 9, V4, 116n * 10n ** 18n, -100n * MICRO, ID('b3'))]);
    expect(stored()).toMatchObject([{ venue: 'Four', base: 100n * E9, usdc: 116n * E9 }]);
  });
});

test('decimals are read from the tokens; a token that reports none is left out with a warning', async () => {
  DECIMALS[EURC] = 9n;
  delete DECIMALS[COIN];
  try {
    await take([
      create.v2(5, USDC, EURC, repeat('a1')),
      create.v2(5, COIN, USDC, repeat('a2')),
      swap('v2', 6, repeat('a1'), 116n * MICRO, -100n * E9),
      swap('v2', 6, repeat('a2'), 100n * 10n ** 18n, -116n * MICRO),
    ]);
    expect(stored()).toMatchObject([{ base: 100n * E9, usdc: 116n * E9 }]);
    expect(warnings).toEqual([expect.stringContaining(COIN)]);
  } finally {
    DECIMALS[EURC] = 6n;
    DECIMALS[COIN] = 18n;
  }
});

test('pools from before the first scanned block are found by asking the venues', async () => {
  existing[`0xe6a43905${word(USDC)}${word(EURC)}`] = topic(repeat('a1'));
  const asked = await take([swap('v2', 9, repeat('a1'), 116n * MICRO, -100n * MICRO)]);
  expect(asked.rescanFrom).toBe(9);
  expect(stored()).toMatchObject([{ venue: 'Two', base: 100n * E9 }]);
});

test('a chain that does not answer fails the span, and the next one asks again', async () => {
  server.fault = '500';
  await expect(take([create.v2(5, USDC, EURC, repeat('a1'))])).rejects.toThrow('no provider answered');
  server.fault = null;
  await take([create.v2(5, USDC, EURC, repeat('a1')), swap('v2', 6, repeat('a1'), 116n * MICRO, -100n * MICRO)]);
  expect(stored()).toHaveLength(1);
});
