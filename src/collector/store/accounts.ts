import { type Coverage, missingFrom, type Span } from '../../lib/coverage.ts';
import { hexToBytes } from '../../lib/hex.ts';
import type { Sqlite } from '../../lib/sqlite-file.ts';
import { createChainFacts } from './facts.ts';
import type { AccountRow, TokenAccountRow } from './rows.ts';

/** How many accounts are kept. */
interface AccountLimits {
  readonly perHour: number;
  readonly perToken: number;
}

/**
 * At ten transactions a block, an hour of Arc has 72,000 transactions. A row takes about 40 bytes, so that a full hour is less than a megabyte.
 * Without a bound, a flood of cheap transactions from new accounts would fill the disk.
 */
const LIMITS: AccountLimits = { perHour: 20_000, perToken: 50_000 };
/** Stands for the accounts that are not kept. */
const OTHERS = Buffer.alloc(0);

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

type Hex = `0x${string}`;

/** A block and its time in Unix seconds. */
interface BlockPlace {
  readonly block: number;
  readonly at: number;
}

/** An unbroken span of blocks that were searched. */
interface SearchedSpan {
  readonly since: BlockPlace;
  readonly until: BlockPlace;
}

/** The transactions from an account or addressed to it, in the blocks that were searched. */
export interface AccountActivity extends SearchedSpan {
  readonly first: BlockPlace | null;
  readonly last: BlockPlace | null;
  /** False when some hour had more accounts than are kept, so that one may be missing. */
  readonly complete: boolean;
}

/** Accounts that a transfer moved a token to or from, in the blocks that were searched. */
interface TokenAccounts extends SearchedSpan {
  readonly accounts: number;
  /** False when there are more than are kept. */
  readonly complete: boolean;
}

/** Accounts that were seen in transactions, and in transfers of watched tokens. */
export interface AccountReads {
  /** Null before the first block was searched. */
  activityOf(account: Hex): AccountActivity | null;
  /** Null before the first block was searched. The transfers of tokens that are not watched are not searched, so such a token has no accounts. */
  accountsOfToken(token: Hex): TokenAccounts | null;
  /** The newest transfer that moved a watched token to or from an account; null when none is stored. */
  lastMoved(token: Hex, account: Hex): BlockPlace | null;
}

const SEEN = `SELECT min(first_block), max(last_block) FROM account_hours
  WHERE hour IN (SELECT value FROM json_each(?)) AND account = ?`;

export function createAccountReads(db: Sqlite): AccountReads {
  const seen = db.prepare(SEEN).raw();
  const atOf = db.prepare('SELECT at FROM blocks WHERE number = ?').pluck();
  const counted = db.prepare('SELECT count(*) FROM token_accounts WHERE token = ? AND account <> ?').pluck();
  const moved = db.prepare(
    'SELECT last_block AS block, last_at AS at FROM token_accounts WHERE token = ? AND account = ?',
  );
  const facts = createChainFacts(db);

  const placeOf = (block: number | null): BlockPlace | null => {
    const at = block === null ? undefined : (atOf.get(block) as number | undefined);
    return block === null || at === undefined ? null : { block, at };
  };
  const searched = (kind: 'accounts' | 'logs'): SearchedSpan | null => {
    const span = facts.coverage(kind).at(-1);
    const [since, until] = [placeOf(span?.from ?? null), placeOf(span?.to ?? null)];
    return since && until && { since, until };
  };
  const movedBy = (token: Hex, account: Uint8Array) => moved.get(hexToBytes(token), account) as BlockPlace | undefined;

  return {
    activityOf(account) {
      const span = searched('accounts');
      if (span === null) return null;
      const hours = hoursOf(span);
      const [first, last] = seen.get(hours, hexToBytes(account)) as [number | null, number | null];
      const [others] = seen.get(hours, OTHERS) as [number | null];
      return { ...span, first: placeOf(first), last: placeOf(last), complete: others === null };
    },
    accountsOfToken(token) {
      const span = searched('logs');
      if (span === null) return null;
      const accounts = counted.get(hexToBytes(token), OTHERS) as number;
      return { ...span, accounts, complete: movedBy(token, OTHERS) === undefined };
    },
    lastMoved: (token, account) => movedBy(token, hexToBytes(account)) ?? null,
  };
}

/** The hours that a span touches, as JSON: a table-valued list of keys, so that one prepared statement serves spans of any length. */
function hoursOf({ since, until }: SearchedSpan): string {
  const first = Math.floor(since.at / HOUR) * HOUR;
  return JSON.stringify(
    Array.from({ length: Math.floor((until.at - first) / HOUR) + 1 }, (_, at) => first + at * HOUR),
  );
}

export const HOUR = 3600;
/** An hour is cached once this many blocks lie above it: no replaced block is that deep. */
const DEPTH = 128;
/** Two days, for windows that overlap. */
const MAX_HOURS = 48;

/** The stored blocks on either side of an hour, and whether every block of it was read whole. */
interface HourFrame {
  /** The highest stored block before it; null when there is none. */
  readonly below: number | null;
  /** The lowest stored block after it; null while the hour lasts. */
  readonly above: number | null;
  readonly complete: boolean;
}

interface Kept<T> {
  readonly frame: HourFrame;
  readonly stored: string;
  readonly value: T;
}

/**
 * Computes a value from an hour's rows (`hour` is its first second), and caches it until the stored rows of the hour change.
 * A day of half-second blocks is 172,800 rows, too many to read for each answer. A past hour changes only while it is being filled.
 */
export function createHourMemo<T>(db: Sqlite, compute: (hour: number, frame: HourFrame) => T): (hour: number) => T {
  const facts = createChainFacts(db);
  const kept = new Map<number, Kept<T>>();
  const before = db.prepare('SELECT number FROM blocks WHERE at < ? ORDER BY at DESC, number DESC LIMIT 1').pluck();
  const after = db.prepare('SELECT number FROM blocks WHERE at >= ? ORDER BY at, number LIMIT 1').pluck();
  const newest = db.prepare('SELECT max(number) FROM blocks').pluck();

  function frameOf(hour: number, full: Coverage): HourFrame {
    const below = (before.get(hour) ?? null) as number | null;
    const above = (after.get(hour + HOUR) ?? null) as number | null;
    const from = below ?? (after.get(hour) as number | undefined) ?? 0;
    // Without a stored block below, only the chain's first block proves that nothing is missing.
    const begins = below !== null || from <= 1;
    return { below, above, complete: above !== null && begins && isCovered(full, { from, to: above }) };
  }

  return (hour) => {
    const [full, fees] = [facts.coverage('full'), facts.coverage('fees')];
    const known = kept.get(hour);
    if (known && known.stored === storedIn(known.frame, full, fees)) return known.value;
    const frame = frameOf(hour, full);
    const value = compute(hour, frame);
    kept.delete(hour);
    if (frame.above !== null && (newest.get() as number) >= frame.above + DEPTH) {
      kept.set(hour, { frame, stored: storedIn(frame, full, fees), value });
      const [oldest] = kept.keys();
      if (kept.size > MAX_HOURS && oldest !== undefined) kept.delete(oldest);
    }
    return value;
  };
}

function isCovered(coverage: Coverage, span: Span): boolean {
  return missingFrom(coverage, span).length === 0;
}

/** The coverage between the neighbours of an hour, as text to compare. */
function storedIn({ below, above }: HourFrame, ...kinds: Coverage[]): string {
  const span = { from: below ?? 0, to: above ?? 0 };
  return JSON.stringify(kinds.map((coverage) => missingFrom(coverage, span)));
}
