import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { asFileError, migrate, openNamed, type Sqlite } from '../../lib/sqlite-file.ts';
import { closeAfterWrites, groupOf, rewriteLog, syncFailureOf } from './group-commit.ts';
import { stepsOf } from './migrate.ts';
import type { Call, LedgerDatabase, OpenDatabase, Plan, Result, Step } from './port.ts';
import { type Dialect, kept, type Rendered, render } from './sql.ts';

// The ledger in an SQLite file, for one machine: opens it, runs steps and plans in transactions that they share
// (group-commit.ts), prepares, binds and decodes, and checks whether the file can be written.

/** The columns that hold money: bigint in the service, INTEGER or decimal TEXT here. PostgreSQL has a type for them. */
export const MONEY = new Set(
  `amount price charged validAfter validBefore voucherMax balance totalClaimed claimed writtenOff withdrawAmount
   refundNonce amountMsat wei failedWei gas sum`.split(/\s+/),
);
/** The columns that hold flags: INTEGER here, 0 or 1. */
export const FLAGS = new Set('payerHasCode ok notCharged isMade isSpent isFull isOpen isConfirmed'.split(' '));

export const SQLITE: Dialect = {
  parameter: () => '?',
  hasDone: false,
  isNumbered: false,
  rows: (columns, parameters) =>
    `(SELECT ${columns.map((column, at) => `${parameters[at]} AS ${column}`).join(', ')}, 1 AS place)`,
  // One machine holds no lease.
  words: {
    HOLDS_LEASE: 'TRUE',
    INSTR: 'instr',
    COLUMNS: `(SELECT one.name AS table_name, columns.name AS column_name
                 FROM sqlite_schema AS one, pragma_table_info(one.name) AS columns)`,
  },
};

// --- The file

/**
 * Opens the ledger, creating and migrating it as needed. Throws DatabaseFileError, with the path in its message, for a
 * file that cannot be read or written, or is no database.
 */
export function openLedgerDatabase(file: string): Sqlite {
  return openNamed(file, openFile);
}

function openFile(file: string): Sqlite {
  mkdirSync(dirname(file), { recursive: true });
  const db = new Database(file);
  // Readers never wait for the writer, and a commit is one append.
  db.pragma('journal_mode = WAL');
  // WAL alone syncs at checkpoints only. Nothing can rebuild the ledger, and a lost row could charge a buyer twice.
  db.pragma('synchronous = FULL');
  // 16 MB of log. Under load the default would copy pages into the file after nearly every commit, and all would wait.
  db.pragma('wal_autocheckpoint = 4000');
  // A log that a long read let grow is cut back, because its length tells `pingWrites` that nothing is copied.
  db.pragma('journal_size_limit = 33554432');
  db.pragma('foreign_keys = ON');
  // Another process (backup, tools) may hold the write lock for a moment.
  db.pragma('busy_timeout = 5000');
  // A deleted signature or reply must not stay in free pages.
  db.pragma('secure_delete = ON');
  // A killed process may have left transactions that no sync has reached, or that a failed one has lost: a power cut
  // would take them back after they were answered from. A checkpoint waits for no other process.
  rewriteLog(db);
  db.pragma('wal_checkpoint(PASSIVE)');
  migrate(db, stepsOf('sqlite'));
  return db;
}

// --- Steps and plans

/** An open ledger. All stores on the connection share it. Closing it closes the connection. */
export function openSqlite(db: Sqlite): OpenDatabase {
  const anyPayment = db.prepare('SELECT id FROM usdc_payments LIMIT 1');
  return {
    ledger: createDatabase(db),
    ping: async () => {
      anyPayment.get();
      await pingWrites(db);
    },
    syncFailed: syncFailureOf(db),
    close: () => closeAfterWrites(db),
  };
}

function createDatabase(db: Sqlite): LedgerDatabase {
  const { commit } = groupOf(db);
  const { run, look } = createCalls(db);
  const runStep = <T>({ calls, read }: Step<T>): T => read(calls.map((call) => run(call)));
  return {
    read: async (call) => run(call).rows,
    look: async (plan) => look(plan),
    write: (_, step, when) => commit(() => runStep(step), when),
    share: (_, kind, item) => commit(() => runStep(kind.step([item]))[0] as never),
    decide: (_, plan) => commit(() => drive(plan(), run)),
  };
}

function drive<T>(plan: Plan<T>, run: (call: Call) => Result): T {
  for (let next = plan.next(); ; ) {
    if (next.done) return next.value;
    next = plan.next(run(next.value));
  }
}

// --- Calls

interface Prepared {
  readonly first: Bound;
  readonly returnsRows: boolean;
  readonly columns: readonly Column[];
  /** A row of nulls. Its copies have a shape that the engine knows: a row built up by name reads half as fast. */
  readonly blank: object;
  readonly followers: readonly Bound[];
}
interface Column {
  readonly name: string;
  readonly at: number;
  readonly decode: ((value: unknown) => unknown) | null;
}
/** Takes a parameter's value from those of the call, or from the row of `done`. */
type Taker = (values: Call['values'], row: readonly unknown[]) => unknown;
interface Bound {
  readonly statement: Database.Statement<unknown[], unknown>;
  readonly takers: readonly Taker[];
}

/** Runs calls on a connection, which may be read-only. Each is prepared once. */
export function createCalls(db: Sqlite) {
  const find = kept(({ sql, values }): Prepared => {
    const first = bound(db, render(sql.text, SQLITE, values));
    const columns = first.statement.reader ? first.statement.columns().map(({ name }) => name) : [];
    const isExact = columns.some((name) => MONEY.has(name));
    if (columns.length > 0) first.statement.raw().safeIntegers(isExact);
    const given = sql.given ?? columns;
    return {
      first,
      returnsRows: columns.length > 0,
      columns: given.map((name) => ({ name, at: columns.indexOf(name), decode: decoderOf(name, isExact) })),
      blank: Object.fromEntries(given.map((name) => [name, null])),
      followers: sql.followers.map((text) => bound(db, render(asValues(text), SQLITE, values), columns)),
    };
  });

  function run<Row extends object>(call: Call<Row>): Result<Row> {
    const prepared = find(call);
    const { first, returnsRows, followers } = prepared;
    const values = valuesOf(first, call.values);
    if (!returnsRows) return { rows: [], changes: first.statement.run(values).changes };
    const raw = first.statement.all(values) as unknown[][];
    for (const row of raw) for (const one of followers) one.statement.run(valuesOf(one, call.values, row));
    return { rows: raw.map((row) => rowOf(prepared, row) as Row), changes: raw.length };
  }

  function* iterate<Row extends object>(call: Call<Row>): Generator<Row> {
    const prepared = find(call);
    const { first } = prepared;
    const raw = first.statement.iterate(valuesOf(first, call.values)) as IterableIterator<unknown[]>;
    for (const row of raw) yield rowOf(prepared, row) as Row;
  }

  const look = db.transaction((plan: () => Plan<unknown>) => drive(plan(), run));
  return { run, iterate, look: <T>(plan: () => Plan<T>) => look.deferred(plan) as T };
}

/** One row is inserted faster as VALUES than by a SELECT. */
const asValues = (text: string): string => text.replace(/SELECT ([^()]*) FROM done$/, 'VALUES ($1)');

function bound(db: Sqlite, { text, slots }: Rendered, done: readonly string[] = []): Bound {
  const takers = slots.map(({ name, at, column, done: of }): Taker => {
    if (of !== undefined) {
      const place = done.indexOf(of);
      return (_, row) => row[place];
    }
    if (at !== undefined) return (values) => (values[name] as unknown[])[at];
    if (column !== undefined) return (values) => boundValue(onlyOf(values[name])[column]);
    return (values) => boundValue(values[name]);
  });
  return { statement: db.prepare<unknown[], unknown>(text), takers };
}

/** Neighbours share a sync here and not a statement, so there is one row. */
function onlyOf(rows: unknown): Record<string, unknown> {
  const [only, more] = rows as Record<string, unknown>[];
  if (!only || more) throw new Error('a statement takes one row on SQLite');
  return only;
}

function valuesOf({ takers }: Bound, values: Call['values'], row: readonly unknown[] = []): unknown[] {
  return takers.map((take) => take(values, row));
}

/** A value as SQLite binds it: undefined as NULL, and an integer beyond 64 bits as decimal text. */
export function boundValue(value: unknown): unknown {
  if (typeof value === 'boolean') return value ? 1 : 0;
  return typeof value === 'bigint' && BigInt.asIntN(64, value) !== value ? String(value) : value;
}

function rowOf({ columns, blank }: Prepared, raw: readonly unknown[]): object {
  const row: Record<string, unknown> = { ...blank };
  for (const { name, at, decode } of columns) {
    const value = raw[at];
    if (value !== null) row[name] = decode ? decode(value) : value;
  }
  return row;
}

/** Reads a column's value; null where it is read as it is. `isExact`: integers come as bigint. */
export function decoderOf(name: string, isExact: boolean): ((value: unknown) => unknown) | null {
  if (MONEY.has(name)) return (value) => BigInt(value as bigint | string);
  if (FLAGS.has(name)) return (value) => Number(value) === 1;
  return isExact ? (value) => (typeof value === 'bigint' ? Number(value) : value) : null;
}

// --- Whether the file can be written

/** A log of so many times `wal_autocheckpoint` shows that a reader or the disk keeps it from being copied. */
const MOST_CHECKPOINTS = 4;
/** Room for a batch of sales. A full disk still takes writes into the part of the log that is used again. */
const ROOM_BYTES = 2 ** 20;

/**
 * Rejects while the log or the file cannot be written, and says why. Writes only after a batch that has failed: a
 * service that is not ready gets no calls that would show that the disk is well again.
 */
async function pingWrites(db: Sqlite): Promise<void> {
  const group = groupOf(db);
  try {
    if (group.failure) {
      await findRoom(`${db.name}-room`);
      // Writes the version that it has: a frame in the log.
      await group.commit(() => db.pragma(`user_version = ${pragma(db, 'user_version')}`));
      group.failure = null;
    }
    // SQLite ignores it when the log cannot be copied into the file: the log then grows, while every write succeeds.
    const most = MOST_CHECKPOINTS * pragma(db, 'wal_autocheckpoint') * pragma(db, 'page_size');
    if (group.log && group.log.bytes() > most) db.pragma('wal_checkpoint(PASSIVE)');
  } catch (error) {
    const reason = asFileError((error as Error).cause ?? error, db.name)?.reason ?? (error as Error).message;
    throw new Error(`the ledger cannot be written: ${reason}`, { cause: error });
  }
}

/** The bytes are random, because a file system may store zeros in no space. */
async function findRoom(path: string): Promise<void> {
  const file = await open(path, 'w', 0o600);
  try {
    await file.writeFile(randomBytes(ROOM_BYTES));
    await file.datasync();
  } finally {
    await file.close();
    // Another `ping` may have removed it.
    await rm(path, { force: true });
  }
}

const pragma = (db: Sqlite, name: string): number => Number(db.pragma(name, { simple: true }));
