import { inspect } from 'node:util';
import { Client } from 'pg';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { openPostgresStores } from '../../src/store/open-postgres.ts';
import type { LedgerStores } from '../../src/store/ports/stores.ts';
import { describePostgres, POSTGRES_LIMITS } from '../support/ledger/ledger-adapters.ts';
import { reservation } from '../support/ledger/ledger-rows.ts';
import { listingRow } from '../support/ledger/market-rows.ts';
import { accountedOf, nodeOf } from '../support/lightning/lightning-rows.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { type DatabaseProxy, startDatabaseProxy } from '../support/postgres/database-proxy.ts';
import { freshDatabase } from '../support/postgres/postgres-run.ts';

/** Short, for the tests that wait for them. */
const LIMITS = { poolSize: 5, connectTimeoutMs: 1200, statementTimeoutMs: 1200 };
/** Far more than the sum of the time-outs, but limited. */
const BOUND_MS = 20_000;
const WAITING = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

describePostgres('a connection to PostgreSQL', () => {
  let url: string;
  let proxy: DatabaseProxy;
  let stores: LedgerStores;
  let direct: LedgerStores;
  beforeEach(async () => {
    url = await freshDatabase();
    proxy = await startDatabaseProxy(url);
    stores = await openPostgresStores({ url: proxy.url, ...POSTGRES_LIMITS, clock: systemClock });
    direct = await openPostgresStores({ url, ...POSTGRES_LIMITS, clock: systemClock });
  });
  afterEach(async () => {
    vi.useRealTimers();
    await Promise.all([stores.close(), direct.close()]);
    await proxy.stop();
  });

  const reserve = (id: string, of = stores) => of.payments.reserve(reservation(id, id), 0, null);
  /** How a call ended, or that it did not end within the bound. */
  const end = (call: Promise<unknown>): Promise<unknown> =>
    Promise.race([
      call.then(
        (value) => value,
        () => 'rejected',
      ),
      new Promise((late) => setTimeout(() => late('late'), BOUND_MS).unref()),
    ]);
  /** The first result of a call that works again, once the broken connections are gone. The call gets the number of failed tries. */
  async function untilItWorks<T>(call: (tries: number) => Promise<T>): Promise<T> {
    for (let tries = 0; ; tries++) {
      try {
        return await call(tries);
      } catch (error) {
        if (tries === 20) throw error;
      }
    }
  }

  /** An id for each try of a write. With short time-outs a try may be done although its answer came too late, and the next one would find it. */
  const idOf = (id: string, tries: number): string => (tries === 0 ? id : `${id} ${tries}`);

  async function shortenTimeouts(): Promise<void> {
    await stores.close();
    stores = await untilItWorks(() => openPostgresStores({ url: proxy.url, ...LIMITS, clock: systemClock }));
  }

  /** Makes a write until one is seen to wait for a lock. Each waits no longer than its time-out, which a busy machine may have reached by then. */
  async function stuck(watcher: Client, write: () => Promise<unknown>): Promise<{ ended: Promise<unknown> }> {
    for (;;) {
      let isOver = false;
      const ended = end(write()).finally(() => {
        isOver = true;
      });
      while (!isOver) if ((await watcher.query(WAITING)).rows.length > 0) return { ended };
    }
  }

  test('that breaks while it is idle fails at most the next call, and ends no process', async () => {
    expect(await reserve('a')).toBe(true);
    expect(await stores.payments.get('a')).not.toBeNull();
    proxy.cut();
    expect(await untilItWorks(() => stores.payments.get('a'))).toMatchObject({ id: 'a' });
    expect(await untilItWorks(() => reserve('b'))).toBe(true);
  });

  test('that breaks before COMMIT was answered rejects its write, which is not retried and is done at most once', async () => {
    await reserve('before');
    await stores.lightning.claim(accountedOf('before'));
    const first = proxy.loseCommit('cut', 'lost-answer');
    expect(await end(reserve('lost-answer'))).toBe('rejected');
    await first;
    expect(await untilItWorks(() => stores.payments.get('lost-answer'))).toMatchObject({ state: 'reserved' });
    expect(await untilItWorks(() => reserve('lost-answer'))).toBe(false);

    const second = proxy.loseCommit('cut', '2033-02-03');
    const claim = accountedOf('lost', { day: '2033-02-03' });
    expect(await end(stores.lightning.claim(claim))).toBe('rejected');
    await second;
    const counted = await untilItWorks(() => stores.lightning.facilitatorCounts('2033-02-03', nodeOf('theirs')));
    expect(counted).toEqual({ total: 2, today: 1, nodes: 1, own: 2 });
    expect(await stores.lightning.claim(claim)).toBe('duplicate');
  });

  test('that breaks during many writes loses no acknowledged one and makes none twice', async () => {
    const ids = Array.from({ length: 300 }, (_, at) => `p${at}`);
    const writes = ids.map(async (id, at) => {
      for (let turn = 0; turn < at % 30; turn++) await new Promise((next) => setTimeout(next, 1));
      return reserve(id);
    });
    setTimeout(proxy.cut, 12);
    const ends = await Promise.all(writes.map(end));
    expect(ends).not.toContain('late');
    const there = new Set((await direct.payments.listByState(['reserved'], 1000)).map(({ id }) => id));
    expect(ids.filter((id, at) => ends[at] === true && !there.has(id))).toEqual([]);
    // Callers without an answer try again; then every payment is there once.
    const again = await Promise.all(ids.map((id) => untilItWorks(() => reserve(id))));
    expect(ids.filter((_, at) => ends[at] === true && again[at] === true)).toEqual([]);
    expect((await direct.payments.listByState(['reserved'], 1000)).map(({ id }) => id)).toEqual(ids.toSorted());
  });

  test('that is half open fails in bounded time, for reads, writes and new connections, and recovers', async () => {
    await shortenTimeouts();
    await untilItWorks(() => reserve('a'));
    await untilItWorks(() => stores.payments.get('a'));
    proxy.swallow();
    const calls = [stores.payments.get('a'), reserve('b'), stores.ping(), stores.market.drop('x')];
    const more = Array.from({ length: 20 }, () => stores.payments.get('a'));
    expect(await Promise.all([...calls, ...more].map(end))).toEqual(Array.from({ length: 24 }, () => 'rejected'));
    proxy.heal();
    expect(await untilItWorks((tries) => reserve(idOf('c', tries)))).toBe(true);
    expect(await direct.payments.get('b')).toBeNull();
  });

  test('whose statement waits too long for a lock rejects, and nothing of it was done', async () => {
    await shortenTimeouts();
    const blocker = new Client({ connectionString: url });
    const watcher = new Client({ connectionString: url });
    await Promise.all([blocker.connect(), watcher.connect()]);
    await blocker.query("BEGIN; UPDATE ledger_turns SET taken = taken WHERE name = 'payments'");
    // Only the server's time-out ends them, and no time-out of the client before its answer is read.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const outcomes = await Promise.allSettled([reserve('a'), reserve('b')]);
    vi.useRealTimers();
    expect(outcomes.map((one) => one.status === 'rejected' && inspect(one.reason))).toEqual([
      expect.stringContaining('statement timeout'),
      expect.stringContaining('statement timeout'),
    ]);
    // The other write queue has its own turn.
    const claim = (tries: number) => stores.lightning.claim(accountedOf(idOf('a', tries)));
    expect(await end(untilItWorks(claim))).toBe('claimed');
    await blocker.query('ROLLBACK');
    expect(await direct.payments.get('a')).toBeNull();
    expect(await untilItWorks((tries) => reserve(idOf('a', tries)))).toBe(true);
    await blocker.end();
  });

  test('left in the middle of a transaction is ended by the server, and its locks with it', async () => {
    await shortenTimeouts();
    const put = (of: LedgerStores) => of.market.put(listingRow(), 1, { total: 2, perDomain: 2 });
    const blocker = new Client({ connectionString: url });
    const watcher = new Client({ connectionString: url });
    await Promise.all([blocker.connect(), watcher.connect()]);
    await put(direct);
    await blocker.query('BEGIN; UPDATE market_listings SET due_at = due_at + 1');
    const { ended } = await stuck(watcher, () => put(stores));
    await watcher.end();
    // Now the server goes on with the statement. It gets neither the next one nor notice of the client's end.
    proxy.swallow();
    await blocker.query('ROLLBACK');
    await blocker.end();
    expect(await ended).toBe('rejected');
    expect(await end(untilItWorks(() => direct.market.drop(listingRow().place)))).not.toBe('late');
  });

  test('lost while its transaction waits for the turn rejects it as unknown, and the server makes it whole', async () => {
    await shortenTimeouts();
    const blocker = new Client({ connectionString: url });
    const watcher = new Client({ connectionString: url });
    await Promise.all([blocker.connect(), watcher.connect()]);
    await blocker.query("BEGIN; UPDATE ledger_turns SET taken = taken WHERE name = 'payments'");
    const { ended } = await stuck(watcher, () => reserve('stuck'));
    await watcher.end();
    // The server has the whole transaction, its COMMIT included.
    proxy.swallow();
    await blocker.query('ROLLBACK');
    await blocker.end();
    expect(await ended).toBe('rejected');
    expect(await end(untilItWorks(() => reserve('next', direct)))).toBe(true);
    expect(await direct.payments.get('stuck')).toMatchObject({ state: 'reserved' });
    expect(await direct.payments.reserve(reservation('stuck', 'stuck'), 0, null)).toBe(false);
  });

  test('is one of a bounded number, and has a name in pg_stat_activity', async () => {
    const ample = await openPostgresStores({ ...POSTGRES_LIMITS, url, poolSize: LIMITS.poolSize, clock: systemClock });
    await Promise.all([stores.close(), direct.close()]);
    await Promise.all(
      Array.from({ length: 200 }, (_, at) => (at % 2 ? ample.payments.get('a') : reserve(`p${at}`, ample))),
    );
    const client = new Client({ connectionString: url });
    await client.connect();
    // The server notices a moment later that connections of before are gone.
    await vi.waitFor(async () => {
      const { rows } = await client.query<{ count: number }>(
        "SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'percall'",
      );
      expect(rows[0]?.count).toBeGreaterThan(1);
      expect(rows[0]?.count).toBeLessThanOrEqual(LIMITS.poolSize);
    }, 60_000);
    await client.end();
    await ample.close();
  });

  test('that cannot be made is reported without the password', async () => {
    await proxy.stop();
    const open = openPostgresStores({
      url: `postgres://user:hunter2@127.0.0.1:${new URL(proxy.url).port}/ledger`,
      ...LIMITS,
      clock: systemClock,
    });
    const error = await open.catch((reason) => reason);
    expect(error).toBeInstanceOf(Error);
    expect(`${error.stack} ${JSON.stringify(error)}`).not.toContain('hunter2');
    proxy = await startDatabaseProxy(url);
  });

  test('to a server that takes no writes is not ready', async () => {
    await stores.close();
    // No time passes, so that no pause counts as a database that does not answer.
    stores = await openPostgresStores({ url: proxy.url, ...POSTGRES_LIMITS, clock: createManualClock(Date.now()) });
    await expect(stores.ping()).resolves.toBeUndefined();
    const client = new Client({ connectionString: url });
    await client.connect();
    await client.query(`ALTER DATABASE ${new URL(url).pathname.slice(1)} SET default_transaction_read_only = on`);
    await client.end();
    proxy.cut();
    const outcomes = await Promise.all(Array.from({ length: 5 }, () => stores.ping().catch((error) => error.message)));
    expect(outcomes).not.toContain(undefined);
    expect(await stores.ping().catch((error) => error.message)).toBe('the database takes no writes');
  });
});
