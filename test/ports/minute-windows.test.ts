import { Client } from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import type { OpenWindows } from '../../src/lib/limits/count.ts';
import { openInstances } from '../../src/store/instances.ts';
import { describePostgres } from '../support/ledger/ledger-adapters.ts';
import { startDatabaseProxy } from '../support/postgres/database-proxy.ts';
import { freshDatabase } from '../support/postgres/postgres-run.ts';
import { openWindows, type WindowsOpener } from '../support/postgres/windows.ts';
import { quiet } from '../support/quiet.ts';
import { seed, seededRandom } from '../support/random.ts';
import { unlessLate } from './unless-late.ts';

/** How many windows one process counts in before it forgets those that are over. */
const TIDY_EVERY = 1000;
const range = (count: number): number[] => Array.from({ length: count }, (_, at) => at);
const inOrder = (numbers: readonly number[]): number[] => numbers.toSorted((a, b) => a - b);

describePostgres('minute windows that instances share', () => {
  let url: string;
  let sql: Client;
  let openers: WindowsOpener[];
  let retries: number;
  let one: OpenWindows;
  let another: OpenWindows;
  beforeEach(async () => {
    url = await freshDatabase();
    sql = new Client({ connectionString: url });
    await sql.connect();
    [openers, retries] = [[], 0];
    [one, another] = [open(), open()];
  });
  afterEach(async () => {
    await Promise.all(openers.map((each) => each.close()));
    await sql.end();
  });

  function open(at = url, salt?: string): OpenWindows {
    const opener = openWindows(at, { ...(salt && { salt }), onRetry: () => void retries++ });
    openers.push(opener);
    return opener.windows;
  }
  const rows = async (): Promise<number> =>
    (await sql.query<{ count: number }>('SELECT count(*)::int FROM minute_windows')).rows[0]?.count ?? 0;

  test('give each of several calls that are counted together its own number, in their order and for each client', async () => {
    const calls = one('calls');
    const clients = range(300).map((at) => (at % 3 === 0 ? 'a' : 'b'));
    const counted = await Promise.all(clients.map((client) => calls.count(client)));
    const of = (client: string) => counted.filter((_, at) => clients[at] === client).map(({ count }) => count);
    expect(of('a')).toEqual(range(100).map((at) => at + 1));
    expect(of('b')).toEqual(range(200).map((at) => at + 1));
    expect(await rows()).toBe(2);
    expect((await another('calls').count('a')).count).toBe(101);
    expect((await another('invoices').count('a')).count).toBe(1);
  });

  test.each([
    'read committed',
    // Then each aborts the other's counts, which are retried.
    'serializable',
  ])(
    `admit exactly the limit from two openers and number no call twice, with transactions that are %s (SEED=${seed})`,
    async (isolation) => {
      await sql.query(`ALTER DATABASE ${sql.database} SET default_transaction_isolation = '${isolation}'`);
      const [limit, total] = [40, 400];
      const random = seededRandom('minute-windows');
      const both = [one('calls'), another('calls')] as const;
      const counts = await Promise.all(
        range(total).map(async () => {
          for (let turn = Math.floor(random() * 40); turn > 0; turn--) await new Promise(setImmediate);
          return (await both[random() < 0.5 ? 0 : 1].count('client')).count;
        }),
      );
      expect(inOrder(counts)).toEqual(range(total).map((at) => at + 1));
      expect(counts.filter((count) => count <= limit)).toHaveLength(limit);
    },
  );

  test('of many clients are counted by two openers in opposite orders, and neither aborts the other', async () => {
    const clients = range(60).map((at) => `client ${at}`);
    const rounds = 15;
    const ask = async (windows: OpenWindows, order: readonly string[]) => {
      const all: number[][] = [];
      for (let round = 0; round < rounds; round++) {
        all.push(await Promise.all(order.map(async (client) => (await windows('calls').count(client)).count)));
      }
      return all;
    };
    const [here, there] = await Promise.all([ask(one, clients), ask(another, clients.toReversed())]);
    for (const [at] of clients.entries()) {
      const counts = [...here.map((round) => round[at]!), ...there.map((round) => round[clients.length - 1 - at]!)];
      expect(inOrder(counts)).toEqual(range(2 * rounds).map((number) => number + 1));
    }
    expect(retries).toBe(0);
  });

  test('begin anew when a client’s minute is over, and only that client’s', async () => {
    const calls = one('calls');
    await Promise.all(['a', 'a', 'b'].map((client) => calls.count(client)));
    const { rows: ended } = await sql.query(
      'UPDATE minute_windows SET ends_at = ends_at - 60000 WHERE calls = 2 RETURNING calls',
    );
    expect(ended).toHaveLength(1);
    const again = await Promise.all(['a', 'b', 'a'].map((client) => another('calls').count(client)));
    expect(again.map(({ count }) => count)).toEqual([1, 2, 2]);
    for (const { resetSeconds } of again) {
      expect(resetSeconds).toBeGreaterThan(0);
      expect(resetSeconds).toBeLessThanOrEqual(60);
    }
  });

  test('reject all waiting calls when they cannot be counted, and none of these is admitted or counted', async () => {
    const calls = one('calls');
    expect((await calls.count('a')).count).toBe(1);
    await sql.query('ALTER TABLE minute_windows RENAME TO elsewhere');
    const ends = await Promise.allSettled(range(20).map((at) => calls.count(at % 2 === 0 ? 'a' : 'b')));
    expect(new Set(ends.map(({ status }) => status))).toEqual(new Set(['rejected']));
    await sql.query('ALTER TABLE elsewhere RENAME TO minute_windows');
    const counted = await Promise.all(['a', 'b'].map((client) => calls.count(client)));
    expect(counted.map(({ count }) => count)).toEqual([2, 1]);
  });

  test('reject as the ledger does while the database is away, and count on when it is back', async () => {
    const proxy = await startDatabaseProxy(url);
    try {
      const calls = open(proxy.url)('calls');
      expect((await calls.count('a')).count).toBe(1);
      proxy.away();
      const ends = await Promise.allSettled(range(10).map(() => calls.count('a')));
      const outcomes = ends.map((end) => (end.status === 'rejected' ? end.reason.code : end.value));
      expect(outcomes).toEqual(range(10).map(() => 'ledger_unavailable'));
      proxy.heal();
      expect((await calls.count('a')).count).toBe(2);
    } finally {
      await proxy.stop();
    }
  });

  test('are deleted when they have ended, and kept before', async () => {
    const countAll = (name: string) => Promise.all(range(TIDY_EVERY).map((at) => one(name).count(`${at}`)));
    await countAll('old');
    // So many counts end with a look for what may be forgotten; it is over when the next one is counted.
    await one('calls').count('a');
    await sql.query("UPDATE minute_windows SET ends_at = ends_at - 60000 WHERE name = 'old'");
    await one('calls').count('a');
    expect(await rows()).toBe(TIDY_EVERY + 1);
    await countAll('new');
    // Counted after they were forgotten: one statement runs at a time.
    expect((await one('calls').count('a')).count).toBe(3);
    expect(await rows()).toBe(TIDY_EVERY + 1);
  });

  test('identify no client: clients are stored as salted hashes', async () => {
    await one('calls').count('192.0.2.1');
    await open(url, 'other salt')('calls').count('192.0.2.1');
    const { rows: stored } = await sql.query<{ client: Buffer }>('SELECT client FROM minute_windows');
    expect(stored.map(({ client }) => [client.length, client.includes('192')])).toEqual([
      [32, false],
      [32, false],
    ]);
  });

  test('are on disk when a count resolves, whatever the database’s own default is', async () => {
    await sql.query(`
      ALTER DATABASE ${sql.database} SET synchronous_commit = off;
      CREATE TABLE seen (synchronous TEXT);
      CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO seen VALUES (current_setting('synchronous_commit')); RETURN NEW;
      END $$;
      CREATE TRIGGER see BEFORE INSERT ON minute_windows FOR EACH ROW EXECUTE FUNCTION see();`);
    const share = openInstances({ clock: systemClock, log: quiet }, url, 5000);
    await unlessLate(async () => share.windows('calls').count('a'));
    await share.close();
    // More than one only where a count was late.
    expect((await sql.query('SELECT DISTINCT synchronous FROM seen')).rows).toEqual([{ synchronous: 'on' }]);
  });
});
