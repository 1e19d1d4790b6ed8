import type { Sqlite } from '../../../src/lib/sqlite-file.ts';
import type { Call, OpenDatabase, Plan, Result, Turn } from '../../../src/store/db/port.ts';
import { kept, render, sql } from '../../../src/store/db/sql.ts';
import { boundValue, decoderOf, SQLITE } from '../../../src/store/db/sqlite.ts';

// A third driver: SQLite in memory, each write at once in a transaction of its own. It shows what the port asks of a
// database. It refuses what another driver would: a word that the port does not have, and a column that no row has. A
// table is written under one turn only.

type Row = Record<string, unknown>;
const ANY = sql<object>('SELECT 1 AS one');
const TURNS: readonly Turn[] = ['payments', 'lightning', 'others'];
const WHEN: readonly (string | undefined)[] = [undefined, 'now', 'canWait'];
/** Under which turn each table was written, in all tests of this process. */
const turns = new Map<string, Turn>();

export function openMemory(db: Sqlite): OpenDatabase {
  let isOpen = true;

  const prepare = kept(({ sql, values }) =>
    [sql.text, ...sql.followers].map((part) => {
      const { text, slots } = render(part, SQLITE, values);
      const statement = db.prepare<unknown[], Row>(text);
      if (statement.reader) statement.safeIntegers();
      const run = (given: Call['values'], done: Row = {}) => {
        const bound = slots.map(({ name, at, column, done: of }) => {
          if (of !== undefined) return columnOf(done, of);
          if (at !== undefined) return (given[name] as unknown[])[at];
          return boundValue(column === undefined ? given[name] : (given[name] as Row[])[0]?.[column]);
        });
        const rows = statement.reader ? statement.all(bound) : [];
        return { rows, changes: statement.reader ? rows.length : statement.run(bound).changes };
      };
      return { run, table: /^\s*(?:INSERT INTO|UPDATE|DELETE FROM)\s+(\w+)/.exec(part)?.[1] };
    }),
  );

  function run(call: Call, turn?: Turn): Result {
    if (!isOpen) throw new Error('the ledger is not open');
    const parts = prepare(call);
    for (const { table } of parts) if (turn !== undefined && table) checkTurn(table, turn);
    const [decide, ...follow] = parts;
    const { rows, changes } = decide?.run(call.values) ?? { rows: [], changes: 0 };
    for (const row of rows) for (const one of follow) one.run(call.values, row);
    return { rows: rows.map((row) => decoded(row, call.sql.given ?? Object.keys(row))), changes };
  }
  const write = async <T>(turn: Turn, work: (run: (call: Call) => Result) => T): Promise<T> =>
    db.transaction(() => work((call) => run(call, turn)))();

  return {
    ledger: {
      read: async (call) => run(call).rows as never,
      look: async (plan) => drive(plan(), run),
      write: (turn, { calls, read }, when) => {
        if (!WHEN.includes(when)) throw new Error(`no write is made ${when}`);
        return write(turn, (one) => read(calls.map(one)));
      },
      share: async (turn, { step }, item) => {
        const { calls, read } = step([item]);
        return (await write(turn, (one) => read(calls.map(one))))[0] as never;
      },
      decide: (turn, plan) => write(turn, (one) => drive(plan(), one)),
    },
    ping: async () => void run(ANY({})),
    syncFailed: new Promise(() => {}),
    close: async () => {
      isOpen = false;
    },
  };
}

function checkTurn(table: string, turn: Turn): void {
  if (!TURNS.includes(turn)) throw new Error(`there is no turn ${turn}`);
  const known = turns.get(table) ?? turn;
  if (known !== turn) throw new Error(`${table} is written under two turns: ${known}, ${turn}`);
  turns.set(table, turn);
}

function drive<T>(plan: Plan<T>, run: (call: Call) => Result): T {
  let next = plan.next();
  while (!next.done) next = plan.next(run(next.value));
  return next.value;
}

const read = (name: string, value: unknown): unknown => (value === null ? null : decoderOf(name, true)?.(value));
const decoded = (row: Row, names: readonly string[]): Row =>
  Object.fromEntries(names.map((name) => [name, read(name, columnOf(row, name))]));

function columnOf(row: Row, name: string): unknown {
  if (!(name in row)) throw new Error(`no column is ${name}`);
  return row[name];
}
