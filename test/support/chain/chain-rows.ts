import { join } from 'node:path';
import Database from 'better-sqlite3';
import { migrate, readMigrations, type Sqlite } from '../../../src/lib/sqlite-file.ts';

/** The chain database's migrations. */
export const SCHEMA = join(import.meta.dirname, '../../../src/collector/store/migrations');

/** A chain database with nothing in it, in memory. */
export function emptyChainDatabase(): Sqlite {
  const db = new Database(':memory:');
  migrate(db, readMigrations(SCHEMA));
  return db;
}

/** A block as tests write it: whole unless `exact` is 0. */
export interface BlockFixture {
  number: number;
  at: number;
  baseFee?: number;
  nextBaseFee?: number | null;
  utilisation?: number;
  gasLimit?: number | null;
  exact?: 0 | 1;
  counts?: readonly [deploys: number, nativeTransfers: number, tokenTransfers: number, contractCalls: number];
}

const GWEI = 1_000_000_000;
const bytes = (length: number, value: number) => {
  const buffer = Buffer.alloc(length);
  buffer.writeUIntBE(value, length - 6, 6);
  return buffer;
};

/** Twenty bytes that end in the number. */
export const account = (value: number): Buffer => bytes(20, value);
/** Thirty-two bytes that end in the number. */
export const hash = (value: number): Buffer => bytes(32, value);
export const toHex = (buffer: Buffer): `0x${string}` => `0x${buffer.toString('hex')}`;

export function putBlocks(db: Sqlite, blocks: readonly BlockFixture[]): void {
  const insert = db.prepare(
    `INSERT INTO blocks (number, exact, at, hash, parent_hash, base_fee, next_base_fee, utilisation, gas_limit,
                         transactions, deploys, native_transfers, token_transfers, contract_calls)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  for (const block of blocks) {
    const { number, at, exact = 1, baseFee = 20 * GWEI, nextBaseFee = null, utilisation = 0 } = block;
    const { gasLimit = 30_000_000, counts = [0, 0, 0, 0] } = block;
    const whole = exact === 1;
    insert.run(
      ...[number, exact, at, ...(whole ? [hash(number), hash(number - 1)] : [null, null])],
      ...[baseFee, nextBaseFee, utilisation, whole ? gasLimit : null],
      ...(whole ? [counts.reduce((sum, count) => sum + count, 0), ...counts] : [null, null, null, null, null]),
    );
  }
}

/** Marks these blocks as read: `full`, `fees`, `logs` or `accounts`. */
export function putCoverage(
  db: Sqlite,
  kind: 'full' | 'fees' | 'logs' | 'accounts',
  spans: readonly (readonly [number, number])[],
): void {
  db.prepare('INSERT INTO facts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value').run(
    kind,
    JSON.stringify(spans),
  );
}

export interface TradeFixture {
  block: number;
  at: number;
  baseE9: number | bigint;
  usdcE9: number | bigint;
  token?: Buffer;
  pool?: Buffer;
  logIndex?: number;
  excluded?: string | null;
  side?: 'buy' | 'sell' | null;
  priceBefore?: number | null;
  priceAfter?: number | null;
  usdcReserve?: number | null;
}

export function putTrades(db: Sqlite, trades: readonly TradeFixture[]): void {
  const insert = db.prepare(
    `INSERT INTO trades (block, log_index, transaction_hash, at, pool, token, base_e9, usdc_e9, excluded,
                         side, price_before, price_after, usdc_reserve)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  for (const {
    block,
    at,
    baseE9,
    usdcE9,
    token = account(0xe0),
    pool = account(1),
    logIndex = 0,
    excluded = null,
    ...priced
  } of trades) {
    const { side = null, priceBefore = null, priceAfter = null, usdcReserve = null } = priced;
    const amounts = [BigInt(baseE9), BigInt(usdcE9)];
    insert.run(
      ...[block, logIndex, hash(block), at, pool, token, ...amounts, excluded],
      ...[side, priceBefore, priceAfter, usdcReserve],
    );
  }
}
