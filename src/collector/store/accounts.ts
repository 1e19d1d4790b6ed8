import type { Span } from '../../lib/coverage.ts';
import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import type { Sqlite } from '../../lib/sqlite-file.ts';
import { type BlockPlace, createChainFacts, HOUR, hourOf } from './facts.ts';
import type { AccountRow, TokenAccountRow } from './rows.ts';

// The accounts that were seen, by hour and by token. Above a bound one row (`OTHERS`) stands for all others.

/** At about 40 bytes a row, an hour is less than a megabyte: a flood of accounts must not fill the disk. */
const LIMITS = { perHour: 20_000, perToken: 50_000 };
const OTHERS = Buffer.alloc(0);

/** The caller holds the transaction. Rows may be stored again. */
export interface AccountWrites {
  storeHours(rows: readonly AccountRow[]): void;
  storeTokens(rows: readonly TokenAccountRow[]): void;
  /** Forgets blocks that left the chain. An account keeps its other block: blocks between are not known. */
  drop(span: Span): void;
  /** Deletes hours before `end`, and tokens' accounts last seen before it. */
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

/** How many more rows a key may have, counted once. After a rollback it says too few, never too many. */
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

/** A span of blocks that were searched, without a gap. */
interface SearchedSpan {
  readonly since: BlockPlace;
  readonly until: BlockPlace;
}

/** The transactions from an account or addressed to it. */
export interface AccountActivity extends SearchedSpan {
  readonly first: BlockPlace | null;
  readonly last: BlockPlace | null;
  /** False when an hour had more accounts than are kept. */
  readonly complete: boolean;
}

/** Accounts that a transfer moved a token to or from. */
interface TokenAccounts extends SearchedSpan {
  readonly accounts: number;
  /** False when there are more than are kept. */
  readonly complete: boolean;
}

/** In the searched blocks; null before the first one. Times in Unix seconds. */
export interface AccountReads {
  activityOf(account: Hex): AccountActivity | null;
  /** A token that is not watched has none. */
  accountsOfToken(token: Hex): TokenAccounts | null;
  /** The newest stored transfer to or from an account. */
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

/** As JSON, so that one prepared statement serves spans of any length. */
function hoursOf({ since, until }: SearchedSpan): string {
  const first = hourOf(since.at);
  const length = Math.floor((until.at - first) / HOUR) + 1;
  return JSON.stringify(Array.from({ length }, (_, at) => first + at * HOUR));
}

// The contracts that transactions created: pages of them, one by its address, those of the same code.

interface Deploy {
  readonly address: `0x${string}`;
  readonly deployer: `0x${string}`;
  readonly transaction: `0x${string}`;
  readonly block: number;
  /** Unix seconds. */
  readonly at: number;
  /** Null until the contract's code was read. */
  readonly codeBytes: number | null;
  /** What it seems to be. */
  readonly label: string | null;
}

export interface DeployDetail extends Deploy {
  /** keccak-256; null until the code was read, and of a contract without code. */
  readonly codeHash: `0x${string}` | null;
  /** See `DeployKinds`; null before the first look. */
  readonly kinds: number | null;
  /** Unix seconds; null when it is not looked at again. */
  readonly lookAt: number | null;
}

/** Pages have the newest block first, and in a block order by the transaction's hash. */
export type DeployPlace = Pick<Deploy, 'block' | 'transaction'>;

export interface DeployPage {
  readonly limit: number;
  readonly deployer: `0x${string}` | null;
  /** `other` is neither a token nor a proxy. */
  readonly kind: 'token' | 'proxy' | 'other' | null;
  /** The last of the page before; null: from the newest on. */
  readonly after: DeployPlace | null;
}

export type ContractCreation = Pick<Deploy, 'deployer' | 'transaction' | 'block' | 'at' | 'label'>;

/** Lists are newest first. */
export interface DeployReads {
  deploys(limit: number): Deploy[];
  deployPage(page: DeployPage): DeployDetail[];
  /** Null when it is older than the stored blocks, or another contract's call made it. */
  creationOf(address: `0x${string}`): ContractCreation | null;
  countWithCode(codeHash: `0x${string}`): number;
  /** From here on every block was read. */
  deploysSince(): BlockPlace | null;
  /** The oldest stored contract with this code, other than `except`. */
  withCode(codeHash: Uint8Array, except: `0x${string}`): `0x${string}` | null;
}

type Bytes<T, K extends keyof T> = Omit<T, K> & Record<K, Uint8Array>;
type KeptDeploy = Bytes<Deploy, 'address' | 'deployer' | 'transaction'>;
type CreationRow = Bytes<ContractCreation, 'deployer' | 'transaction'>;
type DetailRow = KeptDeploy & Pick<DeployDetail, 'kinds' | 'lookAt'> & { readonly codeHash: Uint8Array | null };

const COLUMNS = 'address, deployer, transaction_hash AS "transaction", block, at, code_bytes AS codeBytes, label';
const ORDER = 'ORDER BY block DESC, transaction_hash LIMIT @limit';
/** Each is the condition of a partial index. */
const KINDS = { token: 'kinds IN (1, 3)', proxy: 'kinds IN (2, 3)', other: 'kinds = 0' } as const;
const CREATION = `
  SELECT deployer, transaction_hash AS "transaction", block, at, label FROM deploys
   WHERE address = ? ORDER BY block DESC LIMIT 1`;
const AFTER = 'block <= @block AND (block < @block OR transaction_hash > @transaction)';

export function createDeployReads(db: Sqlite): DeployReads {
  const newest = db.prepare(`SELECT ${COLUMNS} FROM deploys ${ORDER}`);
  const creation = db.prepare(CREATION);
  const twin = db
    .prepare('SELECT address FROM deploys WHERE code_hash = ? AND address <> ? ORDER BY block LIMIT 1')
    .pluck();
  const alike = db.prepare('SELECT count(*) FROM deploys WHERE code_hash = ?').pluck();
  const facts = createChainFacts(db);
  return {
    withCode(codeHash, except) {
      const address = twin.get(codeHash, hexToBytes(except)) as Uint8Array | undefined;
      return address === undefined ? null : bytesToHex(address);
    },
    deploys: (limit) => (newest.all({ limit }) as KeptDeploy[]).map(fromRow),
    deployPage({ limit, deployer, kind, after }) {
      const conditions = [
        ...(deployer === null ? [] : ['deployer = @deployer']),
        ...(kind === null ? [] : [KINDS[kind]]),
        ...(after === null ? [] : [AFTER]),
      ];
      const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;
      const rows = db
        .prepare(`SELECT ${COLUMNS}, code_hash AS codeHash, kinds, look_at AS lookAt FROM deploys ${where} ${ORDER}`)
        .all({
          limit,
          ...(deployer !== null && { deployer: hexToBytes(deployer) }),
          ...(after !== null && { block: after.block, transaction: hexToBytes(after.transaction) }),
        }) as DetailRow[];
      return rows.map(({ codeHash, ...row }) => ({ ...fromRow(row), codeHash: codeHash && bytesToHex(codeHash) }));
    },
    creationOf(address) {
      const row = creation.get(hexToBytes(address)) as CreationRow | undefined;
      if (row === undefined) return null;
      return { ...row, deployer: bytesToHex(row.deployer), transaction: bytesToHex(row.transaction) };
    },
    countWithCode: (codeHash) => alike.get(hexToBytes(codeHash)) as number,
    deploysSince: () => facts.placeOf(facts.coverage('full').at(-1)?.from),
  };
}

function fromRow<R extends KeptDeploy>({ address, deployer, transaction, ...rest }: R) {
  return {
    ...rest,
    address: bytesToHex(address),
    deployer: bytesToHex(deployer),
    transaction: bytesToHex(transaction),
  };
}
