import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { createRetry, openPools } from '../../src/store/db/connections.ts';
import type { Call, LedgerDatabase, Plan, Step, Turn } from '../../src/store/db/port.ts';
import { ledgerOver } from '../../src/store/db/postgres.ts';
import { sql } from '../../src/store/db/sql.ts';
import { openSqlite as openLedger } from '../../src/store/db/sqlite.ts';
import { createWriteQueue } from '../../src/store/db/write-queue.ts';
import { openMemoryLedger } from '../support/ledger/fresh-ledger.ts';
import { describeLedgers, POSTGRES_LIMITS } from '../support/ledger/ledger-adapters.ts';
import { freshDatabase } from '../support/postgres/postgres-run.ts';

// The driver port says the same on both databases: the same text, the same rows, the same outcome.

interface Open {
  readonly db: LedgerDatabase;
  close(): Promise<void>;
}

const MAKE =
  'CREATE TABLE accounts (id TEXT PRIMARY KEY, amount MONEY NOT NULL CHECK (amount >= 0), ok FLAG, at NUMBER)';
const LOG = 'CREATE TABLE entries (account TEXT NOT NULL, note TEXT NOT NULL)';
const inWords = (text: string, money: string, flag: string, number: string): string =>
  text.replace('MONEY', money).replace('FLAG', flag).replace('NUMBER', number);

async function openSqlite(): Promise<Open> {
  const ledger = openMemoryLedger();
  for (const text of [MAKE, LOG]) ledger.exec(inWords(text, 'INTEGER', 'INTEGER', 'INTEGER'));
  return { db: openLedger(ledger).ledger, close: async () => void ledger.close() };
}

async function openPostgres(): Promise<Open> {
  const { connectTimeoutMs, statementTimeoutMs, poolSize: size } = POSTGRES_LIMITS;
  const url = await freshDatabase();
  const pools = openPools({ url, size, connectTimeoutMs, statementTimeoutMs, applicationName: 'test' });
  for (const text of [MAKE, LOG]) await pools.writes.query(inWords(text, 'NUMERIC(78, 0)', 'BOOLEAN', 'BIGINT'));
  const retry = createRetry(systemClock);
  const queue = (turn: Turn) => createWriteQueue(pools.writes, retry, turn);
  const queues = { payments: queue('payments'), lightning: queue('lightning'), others: queue('others') };
  return { db: ledgerOver(pools, retry, queues), close: pools.close };
}

interface Account {
  readonly id: string;
  readonly amount: bigint;
  readonly ok: boolean | null;
  readonly at: number | null;
}

const ALL = sql<object, Account>('SELECT id, amount, ok, at FROM accounts ORDER BY id');
const FIND = sql<{ ids: readonly string[] }, { id: string }>('SELECT id FROM accounts WHERE id IN @ids ORDER BY id');
const ADD = sql<Account, { id: string }>(
  `INSERT INTO accounts (id, amount, ok, at) VALUES (@id::text, @amount::numeric, @ok::boolean, @at::bigint)
   ON CONFLICT DO NOTHING RETURNING id`,
);
const TOUCH = sql<{ at: number }>('UPDATE accounts SET at = @at::bigint');
const PAY = sql<{ from: string; amount: bigint; to: string }, { id: string; amount: bigint }>(
  'UPDATE accounts SET amount = amount - @amount::numeric WHERE id = @from AND amount >= @amount::numeric RETURNING id, amount',
  ["INSERT INTO entries (account, note) SELECT done.id, 'paid ' || @to::text FROM done"],
  ['amount'],
);
const ADD_ROWS = sql<{ rows: readonly Account[] }, { id: string }>(
  `INSERT INTO accounts (id, amount, ok, at) SELECT id, amount, ok, at
   FROM @rows::(id text, amount numeric, ok boolean, at bigint) RETURNING id`,
);
const ENTRIES = sql<object, { account: string; note: string }>('SELECT account, note FROM entries ORDER BY note');

const account = (id: string, amount = 10n): Account => ({ id, amount, ok: null, at: null });
const step = <T>(calls: readonly Call[], read: Step<T>['read']): Step<T> => ({ calls, read });
const changes = ([result]: Parameters<Step<unknown>['read']>[0]): number => result?.changes ?? -1;

describeLedgers('a database that holds the ledger', ({ name }) => {
  let open: Open;
  beforeEach(async () => {
    open = name === 'sqlite' ? await openSqlite() : await openPostgres();
  });
  afterEach(() => open.close());

  const add = (one: Account) => open.db.write('payments', step([ADD(one)], changes));
  const all = () => open.db.read(ALL({}));

  test('gives money as bigint, numbers and flags as such, and what is null as null', async () => {
    const rich = { id: 'rich', amount: 2n ** 62n, ok: true, at: 1_800_000_000_000 };
    expect([await add(rich), await add({ ...account('poor', 0n), ok: false })]).toEqual([1, 1]);
    expect(await all()).toEqual([{ ...account('poor', 0n), ok: false }, rich]);
  });

  test('gives no rows of a statement that returns none', async () => {
    const rows = open.db.write(
      'payments',
      step([TOUCH({ at: 1 })], ([touched]) => touched?.rows),
    );
    expect(await rows).toEqual([]);
  });

  test.each([[[]], [['a']], [['a', 'b', 'none']]])('finds by the list %j', async (ids) => {
    for (const id of ['a', 'b', 'c']) await add(account(id));
    expect((await open.db.read(FIND({ ids }))).map(({ id }) => id)).toEqual(ids.filter((id) => id !== 'none'));
  });

  test('takes the columns of a row that was given, and on SQLite only one row', async () => {
    const rows = [{ id: 'a', amount: 5n, ok: true, at: 7 }];
    await open.db.write('payments', step([ADD_ROWS({ rows })], changes));
    expect(await all()).toEqual([{ id: 'a', amount: 5n, ok: true, at: 7 }]);
    const more = (given: readonly Account[]) => open.db.write('payments', step([ADD_ROWS({ rows: given })], changes));
    if (name === 'sqlite') {
      for (const given of [[], [account('b'), account('c')]])
        await expect(more(given)).rejects.toThrow('a statement takes one row on SQLite');
    } else expect(await more([account('b'), account('c')])).toBe(2);
  });

  test('runs followers for the rows that the first statement returned, and gives the named columns', async () => {
    await add(account('a'));
    const pay = (from: string, amount: bigint) =>
      open.db.write(
        'payments',
        step([PAY({ from, amount, to: `${amount}` })], ([paid]) => paid?.rows),
      );
    expect(await pay('a', 4n)).toEqual([{ amount: 6n }]);
    // The guard refuses: nothing follows.
    expect([await pay('a', 7n), await pay('none', 1n)]).toEqual([[], []]);
    expect(await open.db.read(ENTRIES({}))).toEqual([{ account: 'a', note: 'paid 4' }]);
  });

  test('lets each call of a step see those before it, and makes all or nothing', async () => {
    const calls = [ADD(account('a')), PAY({ from: 'a', amount: 3n, to: 'b' }), ADD(account('a'))];
    const counts = await open.db.write(
      'payments',
      step(calls, (results) => results.map((one) => one.changes)),
    );
    expect(counts).toEqual([1, 1, 0]);
    const broken = step([ADD(account('b')), ADD(account('c', -1n))], () => 'read');
    await expect(open.db.write('payments', broken)).rejects.toThrow();
    expect((await all()).map(({ id }) => id)).toEqual(['a']);
  });

  test('rejects only the faulty one of writes that share a transaction', async () => {
    const ends = await Promise.allSettled([add(account('a')), add(account('b', -1n)), add(account('c'))]);
    expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect((await all()).map(({ id }) => id)).toEqual(['a', 'c']);
  });

  test('lets a plan decide between two statements, and undoes it when it throws', async () => {
    await add(account('a'));
    function* double(fails: boolean): Plan<bigint> {
      const { rows } = (yield ALL({})) as { rows: readonly Account[] };
      const sum = rows.reduce((total, { amount }) => total + amount, 0n);
      yield ADD(account('sum', sum * 2n));
      if (fails) throw new Error('on the way');
      return sum * 2n;
    }
    await expect(open.db.decide('others', () => double(true))).rejects.toThrow('on the way');
    expect(await open.db.decide('others', () => double(false))).toBe(20n);
    expect((await all()).map(({ id }) => id)).toEqual(['a', 'sum']);
  });

  test('looks at one instant', async () => {
    await add(account('a'));
    function* look(): Plan<number> {
      const before = yield ALL({});
      const after = yield ALL({});
      return before.rows.length + after.rows.length;
    }
    expect(await open.db.look(look)).toBe(2);
  });

  test('lets neighbours of a kind share a step, each with its own outcome', async () => {
    const kind = {
      admits: () => true,
      step: (items: readonly Account[]) => step(items.map(ADD), (results) => results.map((one) => one.changes === 1)),
    };
    const given = ['a', 'a', 'b'].map((id) => open.db.share('payments', kind, account(id)));
    expect(await Promise.all(given)).toEqual([true, false, true]);
  });
});
