import type { Sqlite } from '../../lib/sqlite-file.ts';
import type { Statement } from '../sqlite/database.ts';
import { groupCommitOf } from '../sqlite/group-commit.ts';
import type { Call, LedgerDatabase, Plan, Result, Step } from './port.ts';
import { type Dialect, kept, type Rendered, render } from './sql.ts';

/** The columns that hold money: bigint in the service, INTEGER or decimal TEXT here. PostgreSQL has a type for them. */
export const MONEY = new Set(
  `amount price charged validAfter validBefore voucherMax balance totalClaimed claimed writtenOff withdrawAmount
   refundNonce amountMsat wei failedWei gas sum`.split(/\s+/),
);
/** The columns that hold flags: INTEGER here, 0 or 1. */
export const FLAGS = new Set(['payerHasCode', 'settled', 'ok', 'notCharged', 'isMade', 'isSpent', 'isFull', 'isOpen']);

export const SQLITE: Dialect = {
  parameter: () => '?',
  hasDone: false,
  isNumbered: false,
  rows: (columns, parameters) =>
    `(SELECT ${columns.map((column, at) => `${parameters[at]} AS ${column}`).join(', ')}, 1 AS place)`,
  // One machine holds no lease.
  words: { HOLDS_LEASE: 'TRUE', INSTR: 'instr' },
};

interface Prepared {
  readonly first: Bound;
  readonly returnsRows: boolean;
  readonly columns: readonly Column[];
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
  readonly statement: Statement;
  readonly takers: readonly Taker[];
}

const opened = new WeakMap<Sqlite, LedgerDatabase>();

/** The ledger of a connection, which all stores on it share. */
export function openSqliteDatabase(db: Sqlite): LedgerDatabase {
  const known = opened.get(db) ?? createDatabase(db);
  opened.set(db, known);
  return known;
}

/** The ledger in a file. Concurrent steps share a durable transaction, whose sync a thread makes. */
function createDatabase(db: Sqlite): LedgerDatabase {
  const commit = groupCommitOf(db);
  const find = kept(({ sql, values }): Prepared => {
    const first = bound(db, render(sql.text, SQLITE, values));
    const columns = first.statement.reader ? first.statement.columns().map(({ name }) => name) : [];
    const isExact = columns.some((name) => MONEY.has(name));
    if (columns.length > 0) first.statement.raw().safeIntegers(isExact);
    return {
      first,
      returnsRows: columns.length > 0,
      columns: (sql.given ?? columns).map((name) => ({
        name,
        at: columns.indexOf(name),
        decode: decoderOf(name, isExact),
      })),
      followers: sql.followers.map((text) => bound(db, render(asValues(text), SQLITE, values), columns)),
    };
  });

  function run<Row extends object>(call: Call<Row>): Result<Row> {
    const { first, returnsRows, columns, followers } = find(call);
    const values = valuesOf(first, call.values);
    if (!returnsRows) return { rows: [], changes: first.statement.run(values).changes };
    const raw = first.statement.all(values) as unknown[][];
    for (const row of raw) for (const one of followers) one.statement.run(valuesOf(one, call.values, row));
    return { rows: raw.map((row) => rowOf(columns, row) as Row), changes: raw.length };
  }

  const runStep = <T>({ calls, read }: Step<T>): T => read(calls.map((call) => run(call)));
  const look = db.transaction((plan: () => Plan<unknown>) => drive(plan(), run));
  return {
    read: async (call) => run(call).rows,
    look: async <T>(plan: () => Plan<T>) => look.deferred(plan) as T,
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

/** Of one row, VALUES are inserted without the copy that SELECT makes. */
const asValues = (text: string): string => text.replace(/\bSELECT ([^()]*?)\s+FROM\s+done$/, 'VALUES ($1)');

function rowOf(columns: readonly Column[], raw: readonly unknown[]): object {
  const row: Record<string, unknown> = {};
  for (const { name, at, decode } of columns) {
    const value = raw[at];
    row[name] = decode && value !== null ? decode(value) : value;
  }
  return row;
}

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
  const all = new Array<unknown>(takers.length);
  for (let at = 0; at < takers.length; at++) all[at] = (takers[at] as Taker)(values, row);
  return all;
}

/** A value as SQLite binds it. An integer beyond 64 bits goes into a column of decimal text. */
function boundValue(value: unknown): unknown {
  if (value === undefined) return null;
  if (typeof value === 'boolean') return value ? 1 : 0;
  return typeof value === 'bigint' && BigInt.asIntN(64, value) !== value ? String(value) : value;
}

function decoderOf(name: string, isExact: boolean): ((value: unknown) => unknown) | null {
  if (MONEY.has(name)) return (value) => (typeof value === 'bigint' ? value : BigInt(value as string));
  if (FLAGS.has(name)) return (value) => Number(value) === 1;
  return isExact ? (value) => (typeof value === 'bigint' ? Number(value) : value) : null;
}
