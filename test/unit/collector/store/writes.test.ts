import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openChainDatabase } from '../../../../src/collector/store/database.ts';
import { createChainFacts } from '../../../../src/collector/store/facts.ts';
import type { BlockRow, TradeRow } from '../../../../src/collector/store/rows.ts';
import { type ChainWrites, createChainWrites } from '../../../../src/collector/store/writes.ts';
import type { Sqlite } from '../../../../src/lib/sqlite-file.ts';
import { freshFile } from '../../../support/chain/arc-simulator/collecting.ts';

const START = 1_795_003_200;
const bytes = (value: number, length = 32) => Buffer.alloc(length, value);
const block = (number: number, more: Partial<BlockRow> = {}): BlockRow => ({
  number,
  at: START + Math.floor(number / 2),
  hash: bytes(number % 256),
  parentHash: bytes((number - 1) % 256),
  baseFee: 20_000_000_000n + BigInt(number),
  nextBaseFee: 20_000_000_001n + BigInt(number),
  utilisation: 0.05,
  gasLimit: 30_000_000n,
  transactions: 4,
  deploys: 1,
  nativeTransfers: 1,
  tokenTransfers: 1,
  contractCalls: 1,
  ...more,
});
const blocks = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => block(from + at));
const deploy = (number: number) => ({
  block: number,
  at: START + Math.floor(number / 2),
  address: bytes(number % 256, 20),
  deployer: bytes(number % 2, 20),
  transactionHash: bytes(number % 256),
});
const trade = (number: number): TradeRow => ({
  block: number,
  logIndex: 3,
  transactionHash: bytes(1),
  at: START,
  pool: bytes(2),
  token: bytes(3, 20),
  baseE9: 5n,
  usdcE9: 6n,
  side: 'buy',
  pricing: null,
  excluded: null,
});
const rows = (trades: readonly TradeRow[]) => ({ trades, tokenEvents: [], pools: [] });

let db: Sqlite;
let writes: ChainWrites;
beforeEach(() => {
  db = openChainDatabase(freshFile());
  writes = createChainWrites(db);
});
afterEach(() => {
  db.close();
});
const count = (table: string): unknown => db.prepare(`SELECT count(*) FROM ${table}`).pluck().get();

describe('storing spans', () => {
  test('a span of blocks is stored together with its coverage, and its rows once however often it is stored', () => {
    for (let times = 0; times < 2; times += 1) {
      writes.storeBlocks({ blocks: blocks(10, 14), deploys: [deploy(11)], scan: () => rows([trade(12)]) });
    }
    expect([count('blocks'), count('deploys'), count('trades')]).toEqual([5, 1, 1]);
    const span = [{ from: 10, to: 14 }];
    expect(writes.coverage()).toEqual({ full: span, fees: span, logs: span });
    expect(writes.version()).toBe(2);
  });

  test('when a scanner throws, nothing of the span is stored', () => {
    const failing = () => {
      throw new Error('no decimals');
    };
    expect(() => writes.storeBlocks({ blocks: blocks(10, 14), deploys: [deploy(11)], scan: failing })).toThrow(
      'decimals',
    );
    expect([count('blocks'), count('deploys')]).toEqual([0, 0]);
    expect(writes.coverage()).toEqual({ full: [], fees: [], logs: [] });
    expect(writes.version()).toBe(0);
  });

  test('fee history never replaces a block that was read whole, but a whole block replaces fee history', () => {
    const fee = (number: number) => ({ number, at: 1, baseFee: 7n, utilisation: 0.5 });
    writes.storeBlocks({ blocks: blocks(10, 10), deploys: [], scan: null });
    writes.storeFees({ from: 9, to: 11 }, [fee(9), fee(10), fee(11)]);
    writes.storeBlocks({ blocks: blocks(11, 11), deploys: [], scan: null });
    const read = db.prepare('SELECT number, exact, base_fee FROM blocks ORDER BY number').raw().all();
    expect(read).toEqual([
      [9, 0, 7],
      [10, 1, 20_000_000_010],
      [11, 1, 20_000_000_011],
    ]);
    expect(writes.coverage()).toMatchObject({ full: [{ from: 10, to: 11 }], fees: [{ from: 9, to: 11 }], logs: [] });
  });

  test('blocks without their logs leave what earlier scans found', () => {
    writes.storeLogs({ from: 10, to: 14 }, () => rows([trade(12)]));
    writes.storeBlocks({ blocks: blocks(10, 14), deploys: [], scan: null });
    expect(count('trades')).toBe(1);
    writes.storeLogs({ from: 10, to: 14 }, () => rows([]));
    expect(count('trades')).toBe(0);
  });

  test('replacing drops everything from there up, in the same transaction', () => {
    writes.storeBlocks({ blocks: blocks(10, 20), deploys: [deploy(15), deploy(20)], scan: () => rows([trade(18)]) });
    const replacement = blocks(15, 16).map((row) => ({ ...row, hash: bytes(200 + row.number) }));
    writes.storeBlocks({ blocks: replacement, deploys: [], scan: () => rows([]), replaceFrom: 15 });
    expect([count('blocks'), count('deploys'), count('trades')]).toEqual([7, 0, 0]);
    expect(writes.coverage().full).toEqual([{ from: 10, to: 16 }]);
    expect(db.prepare('SELECT hash FROM blocks WHERE number = 16').pluck().get()).toEqual(bytes(216));
  });

  test('code is added to its deploy; a label that is there stays', () => {
    writes.storeBlocks({ blocks: blocks(10, 10), deploys: [deploy(10)], scan: null });
    const code = {
      block: 10,
      transactionHash: bytes(10),
      codeBytes: 9,
      codeHash: bytes(7),
      label: 'EURC',
      kinds: 0,
      lookAt: 70,
    };
    writes.storeCode([code]);
    writes.storeCode([{ ...code, label: null }]);
    expect(db.prepare('SELECT code_bytes, code_hash, label FROM deploys').raw().get()).toEqual([9, bytes(7), 'EURC']);
  });
});

describe('a later look at a deploy', () => {
  const first = {
    block: 10,
    transactionHash: bytes(10),
    codeBytes: 9,
    codeHash: bytes(7),
    label: null,
    kinds: 0,
    lookAt: 70,
  };
  const look = { block: 10, transactionHash: bytes(10), label: 'token "A"', kinds: 1, lookAt: null };
  const stored = () => db.prepare('SELECT label, kinds, look_at FROM deploys').raw().get();
  const given = (row: { label?: string; kinds?: number }) => {
    writes.storeBlocks({ blocks: blocks(10, 10), deploys: [deploy(10)], scan: null });
    writes.storeCode([{ ...first, ...row }]);
  };

  test('fills in what came late', () => {
    given({});
    writes.storeLabels([look]);
    expect(stored()).toEqual(['token "A"', 1, null]);
  });

  test('replaces a label that says less', () => {
    given({ label: 'same code as 0x01' });
    writes.storeLabels([{ ...look, label: 'token "A", same code as 0x01' }]);
    expect(stored()).toEqual(['token "A", same code as 0x01', 1, null]);
  });

  test('takes nothing away when it finds less, and keeps the time of the next', () => {
    given({ label: 'proxy to 0x01', kinds: 2 });
    writes.storeLabels([{ ...look, label: 'same code as 0x02', kinds: 0, lookAt: 900 }]);
    expect(stored()).toEqual(['proxy to 0x01', 2, 900]);
    writes.storeLabels([{ ...look, label: null, kinds: 2 }]);
    expect(stored()).toEqual(['proxy to 0x01', 2, null]);
  });
});

describe('retention', () => {
  const HOUR_BLOCKS = 7200;

  test('an hour past it becomes one row with its figures; the next hour stays as it is', () => {
    const deploys = [deploy(3), deploy(4), deploy(5), deploy(HOUR_BLOCKS + 1)];
    writes.storeBlocks({ blocks: blocks(1, HOUR_BLOCKS + 100), deploys, scan: () => rows([]) });
    writes.storeLogs({ from: 1, to: 1 }, () => rows([trade(1)]));
    expect(writes.rollUpHour(START + 3600)).toBe(true);
    expect(writes.rollUpHour(START + 3600)).toBe(false);
    expect(db.prepare('SELECT * FROM hours').all()).toEqual([
      {
        at: START,
        blocks: HOUR_BLOCKS - 1,
        counted_blocks: HOUR_BLOCKS - 1,
        min_base_fee: 20_000_000_001,
        avg_base_fee: 20_000_003_600,
        max_base_fee: 20_000_007_199,
        utilisation: expect.closeTo(0.05, 9),
        transactions: 4 * (HOUR_BLOCKS - 1),
        deploys: HOUR_BLOCKS - 1,
        deployers: 2,
        native_transfers: HOUR_BLOCKS - 1,
        token_transfers: HOUR_BLOCKS - 1,
        contract_calls: HOUR_BLOCKS - 1,
      },
    ]);
    expect([count('blocks'), count('deploys'), count('trades')]).toEqual([101, 1, 0]);
    expect(writes.coverage().full).toEqual([{ from: HOUR_BLOCKS, to: HOUR_BLOCKS + 100 }]);
    const facts = createChainFacts(db);
    expect([facts.rolledUp(), facts.first()]).toEqual([HOUR_BLOCKS - 1, 1]);
  });

  test('an hour that has not wholly passed is left alone', () => {
    writes.storeBlocks({ blocks: blocks(1, 100), deploys: [], scan: null });
    expect(writes.rollUpHour(START + 3599)).toBe(false);
    expect(count('blocks')).toBe(100);
  });

  test('a late block is added to its rolled-up hour with its weight', () => {
    const at = (number: number, baseFee: bigint) => block(number, { at: START, baseFee });
    writes.storeBlocks({ blocks: [at(1, 10n), at(2, 20n), at(3, 30n)], deploys: [], scan: null });
    writes.rollUpHour(START + 3600);
    writes.storeBlocks({ blocks: [at(4, 100n)], deploys: [], scan: null });
    writes.rollUpHour(START + 3600);
    const hour = db.prepare('SELECT blocks, min_base_fee, avg_base_fee, max_base_fee, transactions FROM hours').raw();
    expect(hour.all()).toEqual([[4, 10, 40, 100, 16]]);
  });

  test('old hours are deleted', () => {
    writes.storeBlocks({ blocks: blocks(1, 10), deploys: [], scan: null });
    writes.rollUpHour(START + 3600);
    writes.dropHours(START);
    expect(count('hours')).toBe(1);
    writes.dropHours(START + 1);
    expect(count('hours')).toBe(0);
  });
});

describe('the file', () => {
  test('is in WAL mode with synchronous NORMAL, and of the newest version when opened again', () => {
    writes.storeBlocks({ blocks: blocks(1, 3), deploys: [], scan: null });
    const again = openChainDatabase(db.name);
    expect(again.pragma('journal_mode', { simple: true })).toBe('wal');
    expect(again.pragma('synchronous', { simple: true })).toBe(1);
    expect(createChainWrites(again).coverage().full).toEqual([{ from: 1, to: 3 }]);
    again.close();
  });

  test('of a newer program is refused', () => {
    db.pragma('user_version = 999');
    expect(() => openChainDatabase(db.name)).toThrow('version 999');
  });

  test('reset deletes everything of the previous chain', () => {
    writes.storeBlocks({ blocks: blocks(1, 3), deploys: [deploy(2)], scan: () => rows([trade(1)]) });
    writes.storeHead({ number: 3, hash: '0x01', at: 1, advancedMs: 2 });
    writes.reset();
    for (const table of ['blocks', 'deploys', 'trades', 'facts', 'hours']) expect(count(table)).toBe(0);
    expect(writes.coverage().full).toEqual([]);
  });
});

describe('the price before a trade', () => {
  const priced = (number: number, priceAfter: number, pool = 2, priceBefore: number | null = null): TradeRow => ({
    ...trade(number),
    pool: bytes(pool),
    pricing: { priceAfter, priceBefore, usdcReserve: 1 },
  });
  const scan = (from: number, to: number, trades: readonly TradeRow[]) =>
    writes.storeLogs({ from, to }, () => rows(trades));
  const pricesBefore = () =>
    db.prepare('SELECT block, price_before FROM trades ORDER BY block').raw().all() as [number, number | null][];

  test('is the price after the one before it in the same pool, whichever span is stored first', () => {
    scan(20, 29, [priced(21, 1.2), priced(25, 1.3), priced(26, 9, 7)]);
    expect(pricesBefore()).toEqual([
      [21, null],
      [25, 1.2],
      [26, null],
    ]);
    scan(10, 19, [priced(12, 1.1), priced(13, 8, 7)]);
    expect(pricesBefore()).toEqual([
      [12, null],
      [13, null],
      [21, 1.1],
      [25, 1.2],
      [26, 8],
    ]);
  });

  test('is unknown while blocks between the two were not scanned', () => {
    scan(10, 19, [priced(12, 1.1)]);
    scan(30, 39, [priced(31, 1.4)]);
    expect(pricesBefore()).toEqual([
      [12, null],
      [31, null],
    ]);
    scan(20, 29, []);
    expect(pricesBefore()).toEqual([
      [12, null],
      [31, 1.1],
    ]);
  });

  test('is what the trade’s own events say, where they do', () => {
    scan(10, 19, [priced(12, 1.1), priced(13, 1.5, 2, 1.45)]);
    expect(pricesBefore()).toEqual([
      [12, null],
      [13, 1.45],
    ]);
  });

  test('is set again when a span is scanned again', () => {
    scan(10, 19, [priced(12, 1.1), priced(14, 1.2)]);
    scan(14, 19, [priced(14, 1.2), priced(15, 1.3)]);
    expect(pricesBefore()).toEqual([
      [12, null],
      [14, 1.1],
      [15, 1.2],
    ]);
  });
});
