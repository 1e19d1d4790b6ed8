import type { Span } from '../../lib/coverage.ts';
import type { Sqlite } from '../sqlite/database.ts';
import { HOUR } from './hour-memo.ts';
import type { AccountRow, TokenAccountRow } from './rows.ts';

/** How many accounts are kept. */
export interface AccountLimits {
  readonly perHour: number;
  readonly perToken: number;
}

/**
 * At ten transactions a block, an hour of Arc has 72,000 transactions. A row takes about 40 bytes, so that a full hour is less than a megabyte.
 * Without a bound, a flood of cheap transactions from new accounts would fill the disk.
 */
const LIMITS: AccountLimits = { perHour: 20_000, perToken: 50_000 };
/** Stands for the accounts that are not kept. */
export const OTHERS = Buffer.alloc(0);

/** Statements over the accounts that were seen; the caller holds the transaction. */
export interface AccountWrites {
  /** The same rows may be stored again. */
  storeHours(rows: readonly AccountRow[]): void;
  /** The same rows may be stored again. */
  storeTokens(rows: readonly TokenAccountRow[]): void;
  /**
   * Forgets what was seen in the blocks of a span, which are no longer the chain's. An account that was also seen in other blocks of the hour keeps
   * only one of them, because rows do not say which blocks lie between.
   */
  drop(span: Span): void;
  /** Deletes the hours that ended by `end`, and the accounts of tokens that were last seen before it. */
  prune(end: number): void;
}

const SEE_HOUR = `UPDATE account_hours SET first_block = min(first_block, @first), last_block = max(last_block, @last)
  WHERE hour = @hour AND account = @account`;
const ADD_HOUR = `INSERT INTO account_hours (hour, account, first_block, last_block) VALUES (@hour, @account, @first, @last)
  ON CONFLICT DO NOTHING`;
const SEE_TOKEN = `UPDATE token_accounts SET last_block = max(last_block, @block), last_at = max(last_at, @at)
  WHERE token = @token AND account = @account`;
const ADD_TOKEN = `INSERT INTO token_accounts (token, account, last_block, last_at) VALUES (@token, @account, @block, @at)
  ON CONFLICT (token, account) DO UPDATE SET last_block = max(last_block, @block), last_at = max(last_at, @at)`;
const DROPS = [
  'DELETE FROM account_hours WHERE first_block BETWEEN @from AND @to AND last_block BETWEEN @from AND @to',
  'UPDATE account_hours SET first_block = last_block WHERE first_block BETWEEN @from AND @to',
  'UPDATE account_hours SET last_block = first_block WHERE last_block BETWEEN @from AND @to',
  'DELETE FROM token_accounts WHERE last_block BETWEEN @from AND @to',
];

export function createAccountWrites(db: Sqlite, limits: AccountLimits = LIMITS): AccountWrites {
  const seeHour = db.prepare(SEE_HOUR);
  const addHour = db.prepare(ADD_HOUR);
  const seeToken = db.prepare(SEE_TOKEN);
  const addToken = db.prepare(ADD_TOKEN);
  const drops = DROPS.map((sql) => db.prepare(sql));
  const pruneHours = db.prepare('DELETE FROM account_hours WHERE hour < ?');
  const pruneTokens = db.prepare('DELETE FROM token_accounts WHERE last_at < ?');
  const hours = createRoom(db, 'SELECT count(*) FROM account_hours WHERE hour = ?', limits.perHour);
  const tokens = createRoom(db, 'SELECT count(*) FROM token_accounts WHERE token = ?', limits.perToken);
  const forgetRoom = () => {
    hours.forget();
    tokens.forget();
  };
  return {
    storeHours(rows) {
      for (const seen of byHour(rows)) {
        if (seeHour.run(seen).changes > 0) continue;
        addHour.run(hours.take(seen.hour) ? seen : { ...seen, account: OTHERS });
      }
    },
    storeTokens(rows) {
      for (const row of rows) {
        if (seeToken.run(row).changes > 0) continue;
        addToken.run(tokens.take(row.token) ? row : { ...row, account: OTHERS });
      }
    },
    drop(span) {
      for (const statement of drops) statement.run(span);
      forgetRoom();
    },
    prune(end) {
      pruneHours.run(end);
      pruneTokens.run(end);
      forgetRoom();
    },
  };
}

/** One entry for each account of an hour. */
function byHour(rows: readonly AccountRow[]) {
  const seen = new Map<string, { hour: number; account: Uint8Array; first: number; last: number }>();
  for (const { at, account, block } of rows) {
    const hour = Math.floor(at / HOUR) * HOUR;
    const key = `${hour} ${Buffer.from(account).toString('latin1')}`;
    const { first = block, last = block } = seen.get(key) ?? {};
    seen.set(key, { hour, account, first: Math.min(first, block), last: Math.max(last, block) });
  }
  return seen.values();
}

/**
 * The rows that each key has left. They are counted once and then from memory, because counting reads all of them. After a transaction that was rolled
 * back the memory says too few; never too many.
 */
function createRoom(db: Sqlite, sql: string, limit: number) {
  const count = db.prepare(sql).pluck();
  const left = new Map<string, number>();
  return {
    take(key: number | Uint8Array): boolean {
      const name = typeof key === 'number' ? String(key) : Buffer.from(key).toString('hex');
      const room = left.get(name) ?? limit - (count.get(key) as number);
      left.set(name, Math.max(room - 1, 0));
      return room > 0;
    },
    forget: () => left.clear(),
  };
}
