import { beforeEach, describe, expect, test } from 'vitest';
import type { DeployPage } from '../../../../src/collector/store/accounts.ts';
import { createOperationCosts } from '../../../../src/collector/store/costs.ts';
import { type ChainReads, createChainReads } from '../../../../src/collector/store/reads.ts';
import type { Sqlite } from '../../../../src/lib/sqlite-file.ts';
import {
  account,
  emptyChainDatabase,
  hash,
  putBlocks,
  putCoverage,
  putTrades,
  toHex,
} from '../../../support/chain/chain-rows.ts';

const HOUR = 3600;
const NOON = 1_795_176_000 - (1_795_176_000 % HOUR);

let db: Sqlite;
let reads: ChainReads;
beforeEach(() => {
  db = emptyChainDatabase();
  reads = createChainReads(db);
});

test('an empty database gives null or nothing, and no zeros', () => {
  expect(reads.latestFee()).toBeNull();
  expect(reads.recentUse(10)).toEqual([]);
  expect(reads.hours(NOON, NOON + HOUR)).toEqual([]);
  expect(reads.minutes(NOON, NOON + HOUR)).toEqual([]);
  expect(reads.baseFees(NOON, NOON + HOUR).size).toBe(0);
  expect(reads.deploys(10)).toEqual([]);
  expect(reads.lastTrade(toHex(account(1)))).toBeNull();
  expect(reads.tokenEvents(10)).toEqual([]);
  expect(reads.costs('deploy', 'gas', 0).size).toBe(0);
});

test('the version differs after every write through the connection, and after no read', () => {
  const before = reads.version();
  reads.latestFee();
  expect(reads.version()).toBe(before);
  putBlocks(db, [{ number: 1, at: NOON }]);
  expect(reads.version()).not.toBe(before);
});

describe('hours', () => {
  /** Two blocks before noon, four in its hour, one after; one of the four with fees alone. */
  function fill() {
    putBlocks(db, [
      { number: 98, at: NOON - 2, baseFee: 50 },
      { number: 99, at: NOON - 1, baseFee: 50 },
      { number: 100, at: NOON, baseFee: 20, utilisation: 0.1, counts: [1, 2, 3, 4] },
      { number: 101, at: NOON + 1, baseFee: 21, utilisation: 0.2, counts: [0, 1, 0, 1] },
      { number: 102, at: NOON + 1800, baseFee: 23, utilisation: 0.3, exact: 0 },
      { number: 103, at: NOON + 3599, baseFee: 25, utilisation: 0.5, counts: [1, 0, 0, 0] },
      { number: 104, at: NOON + 3600, baseFee: 99 },
    ]);
    const deploy = db.prepare('INSERT INTO deploys VALUES (?, ?, ?, ?, ?, NULL, NULL, NULL, NULL, NULL)');
    deploy.run(100, NOON, account(1), account(0xa), hash(1));
    deploy.run(103, NOON + 3599, account(2), account(0xa), hash(2));
    deploy.run(104, NOON + 3600, account(3), account(0xb), hash(3));
  }

  test('sum up blocks by the clock', () => {
    fill();
    putCoverage(db, 'full', [
      [98, 101],
      [103, 104],
    ]);
    const [before, noon, after] = reads.hours(NOON - 1, NOON + HOUR + 1);
    expect(before).toMatchObject({ at: NOON - HOUR, blocks: 2, minBaseFee: 50n });
    expect(noon).toEqual({
      at: NOON,
      blocks: 4,
      counted: 3,
      complete: false,
      minBaseFee: 20n,
      // 89 / 4, rounded half up.
      avgBaseFee: 22n,
      maxBaseFee: 25n,
      utilisation: expect.closeTo(0.275, 12),
      transactions: 13,
      deploys: 2,
      created: 2,
      deployers: 1,
      nativeTransfers: 3,
      tokenTransfers: 3,
      contractCalls: 5,
    });
    expect(after).toMatchObject({ at: NOON + HOUR, blocks: 1, deployers: 1, complete: false });
  });

  test('are summed up once between two writes, each window by itself', () => {
    fill();
    const [noon, both] = [reads.hours(NOON, NOON + HOUR), reads.hours(NOON - 1, NOON + HOUR)];
    expect([noon, both].map((hours) => hours.map(({ blocks }) => blocks))).toEqual([[4], [2, 4]]);
    expect(reads.hours(NOON + 5, NOON + HOUR - 5)).toBe(noon);
    expect(reads.hours(NOON - 1, NOON + HOUR)).toBe(both);
    putBlocks(db, [{ number: 97, at: NOON - 3 }]);
    expect(reads.hours(NOON - 1, NOON + HOUR).map(({ blocks }) => blocks)).toEqual([3, 4]);
    expect(reads.hours(NOON, NOON + HOUR)).not.toBe(noon);
  });

  test('are complete when every block between their neighbours was read whole', () => {
    fill();
    putCoverage(db, 'full', [[98, 104]]);
    const complete = () => reads.hours(NOON - 1, NOON + HOUR + 1).map((hour) => hour.complete);
    // Nothing is known below 98, and the hour after noon's lasts.
    expect(complete()).toEqual([false, true, false]);
    putCoverage(db, 'full', [
      [98, 101],
      [103, 104],
    ]);
    expect(complete()).toEqual([false, false, false]);
    db.exec('DELETE FROM blocks WHERE number < 100');
    putCoverage(db, 'full', [[100, 104]]);
    expect(complete()).toEqual([false, false]);
  });

  test('the chain’s first hour is complete without a block before it', () => {
    putBlocks(db, [
      { number: 1, at: NOON },
      { number: 2, at: NOON + 1 },
      { number: 3, at: NOON + HOUR },
    ]);
    putCoverage(db, 'full', [[1, 3]]);
    expect(reads.hours(NOON, NOON + 1)).toMatchObject([{ complete: true, blocks: 2 }]);
  });

  test('are cached once deep enough, until their stored rows change', () => {
    fill();
    const depth = Array.from({ length: 200 }, (_, at) => ({ number: 105 + at, at: NOON + HOUR + 1 + at }));
    putBlocks(db, depth);
    putCoverage(db, 'full', [
      [98, 101],
      [103, 304],
    ]);
    putCoverage(db, 'fees', [[98, 304]]);
    const transactions = () => reads.hours(NOON, NOON + 1)[0]?.transactions;
    expect(transactions()).toBe(13);
    // A change that the collector did not note is not seen: it is what makes the hour cheap.
    db.exec('UPDATE blocks SET transactions = 100 WHERE number = 101');
    expect(transactions()).toBe(13);
    putBlocks(db, [{ number: 305, at: NOON + HOUR + 300 }]);
    putCoverage(db, 'full', [
      [98, 101],
      [103, 305],
    ]);
    expect(transactions()).toBe(13);
    // Block 102 is read whole.
    putCoverage(db, 'full', [[98, 305]]);
    expect(transactions()).toBe(111);
  });

  test('are never cached near the head, where blocks may be replaced', () => {
    fill();
    putCoverage(db, 'full', [[98, 104]]);
    const transactions = () => reads.hours(NOON, NOON + 1)[0]?.transactions;
    expect(transactions()).toBe(13);
    db.exec('UPDATE blocks SET transactions = 100 WHERE number = 101');
    expect(transactions()).toBe(111);
  });

  test('are computed from their rolled-up row and the remaining raw blocks', () => {
    db.prepare('INSERT INTO hours VALUES (?, 10, 10, 20, 22, 30, 0.1, 100, 5, 3, 20, 30, 45)').run(NOON);
    putBlocks(db, [
      { number: 50, at: NOON + 3599, baseFee: 33, utilisation: 0.65, counts: [1, 1, 1, 1] },
      { number: 51, at: NOON + 3600 },
    ]);
    expect(reads.hours(NOON, NOON + 1)).toEqual([
      {
        at: NOON,
        blocks: 11,
        counted: 11,
        complete: true,
        minBaseFee: 20n,
        avgBaseFee: 23n,
        maxBaseFee: 33n,
        utilisation: expect.closeTo((10 * 0.1 + 0.65) / 11, 12),
        transactions: 104,
        deploys: 6,
        created: 5,
        deployers: 3,
        nativeTransfers: 21,
        tokenTransfers: 31,
        contractCalls: 46,
      },
    ]);
  });
});

describe('fees', () => {
  test('the newest block, with the gas limit of the newest whole one', () => {
    putBlocks(db, [
      { number: 5, at: NOON, baseFee: 20, nextBaseFee: 21, gasLimit: 777 },
      { number: 6, at: NOON + 1, baseFee: 21, utilisation: 0.25, exact: 0 },
    ]);
    expect(reads.latestFee()).toEqual({
      number: 6,
      at: NOON + 1,
      baseFee: 21n,
      nextBaseFee: null,
      utilisation: 0.25,
      gasLimit: 777n,
    });
    expect(reads.recentUse(5)).toEqual([0, 0.25]);
  });

  test('a window’s histogram counts each block once, whatever hours it touches', () => {
    const blocks = Array.from({ length: 3 * 60 }, (_, at) => ({
      number: 1000 + at,
      at: NOON + at * 60,
      baseFee: 20 + (at % 7),
      utilisation: (at % 5) / 10,
    }));
    putBlocks(db, blocks);
    putCoverage(db, 'full', [[1000, 1179]]);
    const [from, to] = [NOON + 1805, NOON + 2 * HOUR + 61];
    const expected = new Map<bigint, number>();
    for (const { at, baseFee } of blocks) {
      if (at >= from && at < to) expected.set(BigInt(baseFee), (expected.get(BigInt(baseFee)) ?? 0) + 1);
    }
    const found = reads.baseFees(from, to);
    expect([...found].sort()).toEqual([...expected].sort());
    // Once more, from what was kept.
    expect(reads.baseFees(from, to)).toEqual(found);
    expect(reads.minutes(from, to).map(({ at }) => at)).toEqual(
      blocks.map(({ at }) => at).filter((at) => at >= from && at < to),
    );
  });

  test('a minute’s use is the mean of its blocks', () => {
    putBlocks(db, [
      { number: 1, at: NOON, utilisation: 0.1 },
      { number: 2, at: NOON + 59, utilisation: 0.2 },
      { number: 3, at: NOON + 60, utilisation: 0.9 },
    ]);
    expect(reads.minutes(NOON, NOON + 120)).toEqual([
      { at: NOON, blocks: 2, utilisation: expect.closeTo(0.15, 12) },
      { at: NOON + 60, blocks: 1, utilisation: 0.9 },
    ]);
  });
});

describe('trades', () => {
  const token = toHex(account(0xe0));
  const window = { token, after: NOON, to: NOON + 100 };

  test('sums, extremes and exclusions of a window, its beginning exclusive', () => {
    putTrades(db, [
      { block: 1, at: NOON, baseE9: 1, usdcE9: 1_000_000 },
      { block: 2, at: NOON + 1, baseE9: 1_000, usdcE9: 1_100 },
      { block: 3, at: NOON + 50, baseE9: 3_000, usdcE9: 3_600 },
      { block: 3, at: NOON + 50, logIndex: 1, baseE9: 5_000, usdcE9: 900, excluded: 'outlier' },
      { block: 4, at: NOON + 100, baseE9: 2_000, usdcE9: 2_100 },
      { block: 5, at: NOON + 101, baseE9: 1, usdcE9: 1_000_000 },
      { block: 6, at: NOON + 50, baseE9: 7, usdcE9: 7, token: account(0xff) },
    ]);
    expect(reads.tradesIn(window)).toEqual({
      trades: 3,
      excluded: 1,
      baseE9: 6_000n,
      usdcE9: 6_800n,
      complete: false,
      low: { baseE9: 2_000n, usdcE9: 2_100n },
      high: { baseE9: 3_000n, usdcE9: 3_600n },
    });
    expect(reads.lastTrade(token)).toEqual({
      baseE9: 1n,
      usdcE9: 1_000_000n,
      at: NOON + 101,
      block: 5,
      transaction: toHex(hash(5)),
    });
  });

  test('sums hold where 64 bits would overflow', () => {
    const most = 2n ** 63n - 1n;
    putTrades(
      db,
      [1, 2, 3].map((block) => ({ block, at: NOON + block, baseE9: most, usdcE9: most - 5n })),
    );
    expect(reads.tradesIn(window)).toMatchObject({ baseE9: 3n * most, usdcE9: 3n * (most - 5n) });
  });

  test('the last trade is the last in the chain’s order, and never an excluded one', () => {
    putTrades(db, [
      { block: 9, at: NOON, logIndex: 2, baseE9: 1, usdcE9: 3 },
      { block: 9, at: NOON, logIndex: 10, baseE9: 1, usdcE9: 2 },
      { block: 10, at: NOON, logIndex: 0, baseE9: 1, usdcE9: 4 },
      { block: 11, at: NOON + 9, logIndex: 0, baseE9: 1, usdcE9: 5, excluded: 'dust' },
    ]);
    expect(reads.lastTrade(token)).toMatchObject({ block: 10, usdcE9: 4n });
  });

  test('a window is complete when its blocks were searched without a gap', () => {
    putBlocks(db, [
      { number: 10, at: NOON },
      { number: 11, at: NOON + 1 },
    ]);
    const complete = (from: number) => {
      putCoverage(db, 'logs', [
        [2, 5],
        [from, 99],
      ]);
      return reads.tradesIn(window).complete;
    };
    expect([complete(10), complete(11), complete(12), complete(1)]).toEqual([true, false, false, true]);
  });

  test('by size and by venue', () => {
    const pool = db.prepare("INSERT INTO pools VALUES (?, ?, 'v4', ?, ?, 0, 6, 6, 1)");
    pool.run(hash(1), 'Uniswap v4', account(0x44), account(0xe0));
    pool.run(hash(2), 'Uniswap v4', account(0x44), account(0xe0));
    pool.run(account(3), 'Aero', account(3), account(0xe0));
    putTrades(db, [
      { block: 1, at: NOON + 1, baseE9: 10, usdcE9: 11, pool: hash(1) },
      { block: 2, at: NOON + 2, baseE9: 20, usdcE9: 19, pool: hash(2) },
      { block: 3, at: NOON + 3, baseE9: 200, usdcE9: 210, pool: account(3) },
      { block: 4, at: NOON + 4, baseE9: 900, usdcE9: 900, pool: account(3), excluded: 'outlier' },
    ]);
    expect(reads.tradesBySize(window, [19n, 100n, 500n], 1)).toEqual([
      { trades: 1, baseE9: 10n, usdcE9: 11n, distanceE9: 1 },
      { trades: 1, baseE9: 20n, usdcE9: 19n, distanceE9: 1 },
      { trades: 1, baseE9: 200n, usdcE9: 210n, distanceE9: 10 },
      { trades: 0, baseE9: 0n, usdcE9: 0n, distanceE9: 0 },
    ]);
    expect(reads.tradesByVenue(window)).toEqual([
      { name: 'Aero', address: toHex(account(3)), trades: 1, usdcE9: 210n },
      { name: 'Uniswap v4', address: toHex(account(0x44)), trades: 2, usdcE9: 30n },
    ]);
  });
});

test('deploys, newest first, and another contract with the same code', () => {
  const insert = db.prepare('INSERT INTO deploys VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)');
  insert.run(1, NOON, account(1), account(0xa), hash(1), 10, hash(0xc0), 'token "A"');
  insert.run(3, NOON + 1, account(3), account(0xb), hash(3), null, null, null);
  insert.run(2, NOON + 1, account(2), account(0xa), hash(2), 10, hash(0xc0), null);
  expect(reads.deploys(2)).toEqual([
    {
      address: toHex(account(3)),
      deployer: toHex(account(0xb)),
      transaction: toHex(hash(3)),
      block: 3,
      at: NOON + 1,
      codeBytes: null,
      label: null,
    },
    expect.objectContaining({ block: 2, codeBytes: 10 }),
  ]);
  expect(reads.withCode(hash(0xc0), toHex(account(2)))).toBe(toHex(account(1)));
  expect(reads.withCode(hash(0xc0), toHex(account(1)))).toBe(toHex(account(2)));
  expect(reads.withCode(hash(0xc1), toHex(account(1)))).toBeNull();
});

describe('pages of deploys', () => {
  const put = (block: number, kinds: number | null, { deployer = 0xa, code = 0xc0 } = {}) =>
    db
      .prepare('INSERT INTO deploys VALUES (?, ?, ?, ?, ?, 10, ?, NULL, ?, NULL)')
      .run(block >> 2, NOON + block, account(block), account(deployer), hash(block), hash(code), kinds);
  const everything = { limit: 100, deployer: null, kind: null, after: null };
  const ids = (page: Partial<typeof everything | DeployPage>) =>
    reads.deployPage({ ...everything, ...page } as DeployPage).map(({ transaction }) => Number(transaction));

  test('have the newest block first and end where the next begins, in every size and with every filter', () => {
    // Four deploys a block.
    for (let block = 1; block < 24; block++) put(block, block % 4, { deployer: block % 3 });
    const [all] = [ids({})];
    expect(all.slice(0, 6)).toEqual([20, 21, 22, 23, 16, 17]);
    expect([...all].sort((a, b) => a - b)).toEqual(Array.from({ length: 23 }, (_, at) => at + 1));
    const deployer = toHex(account(1));
    for (const filters of [
      {},
      { kind: 'token' },
      { kind: 'proxy' },
      { kind: 'other' },
      { deployer },
      { deployer, kind: 'token' },
    ] as Partial<DeployPage>[]) {
      const expected = all.filter(
        (id) =>
          (filters.deployer === undefined || id % 3 === 1) &&
          (filters.kind === undefined ||
            { token: [1, 3], proxy: [2, 3], other: [0] }[filters.kind ?? 'other'].includes(id % 4)),
      );
      expect(expected.length).toBeGreaterThan(2);
      for (const limit of [1, 2, 3, 7]) {
        const walked: number[] = [];
        for (let after: DeployPage['after'] = null; ; ) {
          const page = reads.deployPage({ ...everything, ...filters, limit, after });
          walked.push(...page.map(({ transaction }) => Number(transaction)));
          if (page.length < limit) break;
          after = page.at(-1)!;
        }
        expect(walked).toEqual(expected);
      }
    }
  });

  test('have what was stored, with null for what is not known yet', () => {
    put(4, 3);
    db.prepare('INSERT INTO deploys VALUES (2, ?, ?, ?, ?, NULL, NULL, NULL, NULL, NULL)').run(
      ...[NOON, account(8), account(0xa), hash(8)],
    );
    expect(reads.deployPage(everything)).toMatchObject([
      { address: toHex(account(8)), codeHash: null, kinds: null, lookAt: null, codeBytes: null },
      { address: toHex(account(4)), codeHash: toHex(hash(0xc0)), kinds: 3, lookAt: null, codeBytes: 10 },
    ]);
  });

  test('of a kind or a deployer are read from their own index', () => {
    const plan = (where: string) =>
      (
        db
          .prepare(
            `EXPLAIN QUERY PLAN SELECT * FROM deploys WHERE ${where} ORDER BY block DESC, transaction_hash LIMIT 9`,
          )
          .all() as { detail: string }[]
      )[0]!.detail;
    expect(plan('kinds IN (1, 3)')).toContain('deploys_tokens');
    expect(plan('kinds IN (2, 3) AND block <= 9')).toContain('deploys_proxies');
    expect(plan('kinds = 0')).toContain('deploys_others');
    expect(plan("deployer = x'00'")).toContain('deploys_deployer');
  });

  test('contracts of one code are counted, and the first unbroken block is known', () => {
    for (const block of [4, 5, 6]) put(block, 0, { code: block < 6 ? 0xc0 : 0xc1 });
    expect([0xc0, 0xc1, 0xc2].map((code) => reads.countWithCode(toHex(hash(code))))).toEqual([2, 1, 0]);
    expect(reads.deploysSince()).toBeNull();
    putBlocks(db, [{ number: 7, at: NOON + 7 }]);
    putCoverage(db, 'full', [
      [1, 3],
      [7, 9],
    ]);
    expect(reads.deploysSince()).toEqual({ block: 7, at: NOON + 7 });
  });
});

test('token events are summed exactly past 64 bits', () => {
  const insert = db.prepare('INSERT INTO token_events VALUES (?, 0, ?, ?, ?, ?, ?)');
  insert.run(1, hash(1), NOON, 'burn', account(1), String(10n ** 30n));
  insert.run(2, hash(2), NOON + 10, 'burn', account(1), '7');
  insert.run(3, hash(3), NOON + 20, 'payout', account(2), '5');
  expect(reads.tokenTotals('burn', NOON + 10)).toEqual({ total: 10n ** 30n + 7n, recent: 7n, events: 2, accounts: 1 });
  expect(reads.tokenTotals('payout', NOON + 21)).toEqual({ total: 5n, recent: 0n, events: 1, accounts: 1 });
  expect(reads.tokenEvents(2)).toEqual([
    { kind: 'payout', amount: 5n, account: toHex(account(2)), block: 3, at: NOON + 20, transaction: toHex(hash(3)) },
    expect.objectContaining({ kind: 'burn', amount: 7n, block: 2 }),
  ]);
});

test('costs are counted by kind and hour, to three digits', () => {
  const costs = createOperationCosts(db);
  const cost = {
    kind: 'tokenTransfer',
    at: NOON + 5,
    gasUsed: 51_234,
    effectiveGasPrice: 20_000_000_000n,
    baseFee: 20_000_000_000n,
  } as const;
  costs.record([cost, cost, { ...cost, gasUsed: 51_251 }, { ...cost, kind: 'deploy' }]);
  costs.record([cost, { ...cost, at: NOON - 1, gasUsed: 999 }]);
  expect(reads.costs('tokenTransfer', 'gas', NOON + 100)).toEqual(
    new Map([
      [51_200n, 3],
      [51_300n, 1],
    ]),
  );
  // 51,234 x 20 gwei is 0.00102468 USDC.
  expect(reads.costs('deploy', 'fee', NOON)).toEqual(new Map([[1_020_000n, 1]]));
  expect(reads.costs('tokenTransfer', 'gas', NOON - HOUR).get(999n)).toBe(1);
  costs.prune(NOON);
  expect(reads.costs('tokenTransfer', 'gas', 0).size).toBe(2);
});
