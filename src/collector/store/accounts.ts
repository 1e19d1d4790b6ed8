import type { Span } from '../../lib/coverage.ts';
import { hexToBytes } from '../../lib/hex.ts';
import type { Sqlite } from '../../lib/sqlite-file.ts';
import { type BlockPlace, createChainFacts, HOUR, hourOf } from './facts.ts';
import type { AccountRow, TokenAccountRow } from './rows.ts';

// The accounts that were seen, by hour and by token. Above a bound one row (`OTHERS`) stands for all further accounts.

/** A row takes about 40 bytes, an hour less than a megabyte. Without bounds a flood of accounts would fill the disk. */
const LIMITS = { perHour: 20_000, perToken: 50_000 };
const OTHERS = Buffer.alloc(0);

/** The caller holds the transaction. Rows may be stored again. */
export interface AccountWrites {
  storeHours(rows: readonly AccountRow[]): void;
  storeTokens(rows: readonly TokenAccountRow[]): void;
  /** Forgets blocks that left the chain. An account keeps one other block: its row does not say which lie between. */
  drop(span: Span): void;
  /** Deletes the hours that ended by `end`, and the accounts of tokens that were last seen before it. */
  prune(end: number): void;
}

const SEE_HOUR = `UPDATE account_hours SET first_block = min(first_block, @first), last_block = max(last_block, @last)
  WHERE hour = @hour AND account = @account`;
const ADD_HOUR = `INSERT INTO account_hours (hour, account, first_block, last_block)
  VALUES (@hour, @account, @first, @last) ON CONFLICT DO NOTHING`;
const SEE_TOKEN = `UPDATE token_accounts SET last_block = max(last_block, @block), last_at = max(last_at, @at)
  WHERE token = @token AND account = @account`;
const ADD_TOKEN = `INSERT INTO token_accounts (token, account, last_block, last_at)
  VALUES (@token, @account, @block, @at)
  ON CONFLICT (token, account) DO UPDATE SET last_block = max(last_block, @block), last_at = max(last_at, @at)`;
const DROPS = [
  'DELETE FROM account_hours WHERE first_block BETWEEN @from AND @to AND last_block BETWEEN @from AND @to',
  'UPDATE account_hours SET first_block = last_block WHERE first_block BETWEEN @from AND @to',
  'UPDATE account_hours SET last_block = first_block WHERE last_block BETWEEN @from AND @to',
  'DELETE FROM token_accounts WHERE last_block BETWEEN @from AND @to',
];

export function createAccountWrites(db: Sqlite, limits = LIMITS): AccountWrites {
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

function byHour(rows: readonly AccountRow[]) {
  const seen = new Map<string, { hour: number; account: Uint8Array; first: number; last: number }>();
  for (const { at, account, block } of rows) {
    const hour = hourOf(at);
    const key = `${hour} ${Buffer.from(account).toString('latin1')}`;
    const { first = block, last = block } = seen.get(key) ?? {};
    seen.set(key, { hour, account, first: Math.min(first, block), last: Math.max(last, block) });
  }
  return seen.values();
}

/** How many more rows a key may have, counted once. After a rollback the memory says too few, never too many. */
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

/** An unbroken span of blocks that were searched. */
interface SearchedSpan {
  readonly since: BlockPlace;
  readonly until: BlockPlace;
}

/** The transactions from an account or addressed to it. */
export interface AccountActivity extends SearchedSpan {
  readonly first: BlockPlace | null;
  readonly last: BlockPlace | null;
  /** False when some hour had more accounts than are kept, so that one may be missing. */
  readonly complete: boolean;
}

/** Accounts that a transfer moved a token to or from. */
interface TokenAccounts extends SearchedSpan {
  readonly accounts: number;
  /** False when there are more than are kept. */
  readonly complete: boolean;
}

/** In the blocks that were searched; null before the first one. Times in Unix seconds. */
export interface AccountReads {
  activityOf(account: Hex): AccountActivity | null;
  /** A token that is not watched has no accounts, because its transfers are not searched. */
  accountsOfToken(token: Hex): TokenAccounts | null;
  /** The newest transfer that moved a watched token to or from an account; null when none is stored. */
  lastMoved(token: Hex, account: Hex): BlockPlace | null;
}

const SEEN = `SELECT min(first_block), max(last_block) FROM account_hours
  WHERE hour IN (SELECT value FROM json_each(?)) AND account = ?`;

export function createAccountReads(db: Sqlite): AccountReads {
  const seen = db.prepare(SEEN).raw();
  const counted = db.prepare('SELECT count(*) FROM token_accounts WHERE token = ? AND account <> ?').pluck();
  const moved = db.prepare(
    'SELECT last_block AS block, last_at AS at FROM token_accounts WHERE token = ? AND account = ?',
  );
  const facts = createChainFacts(db);
  const { placeOf } = facts;

  const searched = (kind: 'accounts' | 'logs'): SearchedSpan | null => {
    const span = facts.coverage(kind).at(-1);
    const [since, until] = [placeOf(span?.from), placeOf(span?.to)];
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

/** The hours that a span touches, as JSON, so that one prepared statement serves spans of any length. */
function hoursOf({ since, until }: SearchedSpan): string {
  const first = hourOf(since.at);
  const length = Math.floor((until.at - first) / HOUR) + 1;
  return JSON.stringify(Array.from({ length }, (_, at) => first + at * HOUR));
}
