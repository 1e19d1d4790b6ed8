import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import type { Migration } from '../../src/lib/sqlite-file.ts';
import { withOwnClient } from '../../src/store/db/connections.ts';
import { migratePostgres, newestVersion, stepsOf } from '../../src/store/db/migrate.ts';
import { openLedgerDatabase } from '../../src/store/db/sqlite.ts';
import { openPostgresStores } from '../../src/store/open-postgres.ts';
import { openPostgresReports } from '../../src/store/reports.ts';
import { gathered } from '../support/gathered.ts';
import { channelState, channelTerms, SEEN_AT, voucherSale } from '../support/ledger/channel-rows.ts';
import { describePostgres, POSTGRES_LIMITS } from '../support/ledger/ledger-adapters.ts';
import { reservation } from '../support/ledger/ledger-rows.ts';
import { freshDatabase } from '../support/postgres/postgres-run.ts';

const STEPS = stepsOf('postgres');
const versionsOf = (steps: readonly Migration[]): number[] => steps.map(({ version }) => version);

describePostgres('the schema of PostgreSQL', () => {
  let url: string;
  let client: Client;
  let folder: string;
  beforeEach(async () => {
    url = await freshDatabase('template1');
    client = new Client({ connectionString: url });
    await client.connect();
    folder = mkdtempSync(join(tmpdir(), 'percall-migrate-'));
  });
  afterEach(async () => {
    await client.end();
    rmSync(folder, { recursive: true });
  });

  const open = () => openPostgresStores({ url, ...POSTGRES_LIMITS, clock: systemClock });
  const column = async (sql: string): Promise<unknown[]> =>
    (await client.query(sql)).rows.map((row) => Object.values(row)[0]);
  const versions = async () => (await column('SELECT version FROM ledger_migrations ORDER BY version')).map(Number);
  const run = (steps: readonly Migration[]) =>
    withOwnClient(url, 5000, (own) => migratePostgres(own, 'the ledger x', 1, steps));
  const runWithout = (...versions: number[]) => run(STEPS.filter(({ version }) => !versions.includes(version)));

  test('is created once by instances that start at the same moment, and all of them serve', async () => {
    const opened = await Promise.all(Array.from({ length: 6 }, open));
    expect(await versions()).toEqual(versionsOf(STEPS));
    const tried = await Promise.all(opened.map((one, at) => one.payments.reserve(reservation(`p${at}`, 'n'), 0, null)));
    expect(tried.filter(Boolean)).toHaveLength(1);
    expect(await column('SELECT count(*) FROM lightning_facilitator_totals')).toEqual(['1']);
    await Promise.all(opened.map((one) => one.close()));
  });

  test('has the tables and columns that SQLite has', async () => {
    await (await open()).close();
    const theirs = await column(
      "SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1",
    );
    const sqlite = openLedgerDatabase(join(folder, 'ledger.db'));
    const ours = sqlite
      .prepare(
        "SELECT m.name || '.' || c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' ORDER BY 1",
      )
      .pluck()
      .all();
    sqlite.close();
    expect(ours.filter((one) => !theirs.includes(one))).toEqual([]);
    const tables = new Set(ours.map((one) => String(one).split('.')[0]));
    const more = theirs.filter((one) => !ours.includes(one) && tables.has(String(one).split('.')[0]));
    expect(more).toEqual([]);
  });

  test('of a newer program is refused and not changed', async () => {
    await (await open()).close();
    await client.query('INSERT INTO ledger_migrations (version, applied_at) VALUES (999, 1)');
    const { port, pathname } = new URL(url);
    await expect(open()).rejects.toThrow(
      `the ledger 127.0.0.1:${port}${pathname} is of version 999; this program knows ${newestVersion()}: start the newer program`,
    );
  });

  test('from before authorizations were hashed keeps its payments, with null in the new columns', async () => {
    await runWithout(14, 17);
    const bytes = (length: number, byte: number) => `'\\x${Buffer.alloc(length, byte).toString('hex')}'`;
    const hashes = `${bytes(20, 9)}, '0', '1', ${bytes(32, 7)}, ${bytes(32, 7)}`;
    await client.query(
      `INSERT INTO usdc_payments (id, network, contract, payer, nonce, state, boot_id, amount, pay_to, valid_after,
                                  valid_before, request_hash, client_hash, reserved_at, place, reason)
       VALUES ('old', 'eip155:5042', ${bytes(20, 0x36)}, ${bytes(20, 9)}, ${bytes(32, 7)}, 'failed', 'b', 1000, ${hashes}, 1, 1, 'reverted');
       INSERT INTO relayer_spending (day, wei, gas, transactions, payments) VALUES ('2026-11-21', 5, 1, 1, 1)`,
    );
    const { payments, spending, close } = await open();
    const unknown = { authorizationHash: null, price: null, charged: null, payerHasCode: null };
    expect(await payments.get('old')).toMatchObject({ state: 'failed', amount: 1000n, ...unknown });
    expect(await spending.spentOn('2026-11-21')).toMatchObject({ wei: 5n, failedWei: 0n });
    const again = reservation('again', 'old', { nonce: Buffer.alloc(32, 7) });
    expect(await payments.reserve(again, 0, 'reverted')).toBe(false);
    await close();
  });

  test('from before channels keeps its payments of every state, is reported unchanged, and sells from channels then', async () => {
    await runWithout(16, 19, 21, 23);
    const states = ['reserved', 'settling', 'unknown', 'settled', 'failed'] as const;
    const bytes = (length: number, byte: number) => `'\\x${Buffer.alloc(length, byte).toString('hex')}'`;
    for (const [at, state] of states.entries())
      await client.query(
        `INSERT INTO usdc_payments (id, network, contract, payer, nonce, state, boot_id, amount, pay_to, valid_after,
                                    valid_before, signature, request_hash, client_hash, reserved_at, ended_at, place, price, charged)
         VALUES ('${state}', 'eip155:5042', ${bytes(20, 0x36)}, ${bytes(20, 9)}, ${bytes(32, at)}, '${state}', 'b', 1000,
                 ${bytes(20, 9)}, '0', '1', ${bytes(65, 1)}, ${bytes(32, 7)}, ${bytes(32, 7)}, 1, 2, ${at}, 900, 1000)`,
      );
    const reports = openPostgresReports(url, 5000);
    expect(await gathered(reports.income(0, 10))).toMatchObject([{ id: 'settled', amount: 1000n }]);
    expect((await reports.status()).sums[3]).toMatchObject({ state: 'settled', amount: 1000n });
    await reports.close();

    const { payments, channels, close } = await open();
    for (const state of states)
      expect(await payments.get(state)).toMatchObject({ state, amount: 1000n, channel: null, calldata: null });
    const end = { charged: 1000n, signature: null, reason: null, endedAt: 6, block: 3 };
    expect(await payments.move('unknown', ['unknown'], 'settled', end)).toBe(true);
    expect(await payments.get('unknown')).toMatchObject({ state: 'settled', charged: 1000n, channel: null });
    await channels.note(channelTerms('a'), channelState(), SEEN_AT);
    expect(await channels.charge(voucherSale('s', 'a', 100n), Buffer.from('reply'), SEEN_AT)).not.toBeNull();
    await close();
  });

  test('from before routes were kept is reported without them, and rows of instances of that version stay without', async () => {
    await runWithout(15);
    const bytes = (length: number, byte: number) => `'\\x${Buffer.alloc(length, byte).toString('hex')}'`;
    const put = (id: string, nonce: number) =>
      client.query(
        `INSERT INTO usdc_payments (id, network, contract, payer, nonce, state, boot_id, amount, pay_to, valid_after,
                                    valid_before, request_hash, client_hash, reserved_at, ended_at, place)
         VALUES ('${id}', 'eip155:5042', ${bytes(20, 0x36)}, ${bytes(20, 9)}, ${bytes(32, nonce)}, 'settled', 'b', 1000,
                 ${bytes(20, 9)}, '0', '1', ${bytes(32, 7)}, ${bytes(32, 7)}, 1, 2, 1)`,
      );
    await put('a', 7);
    const reports = openPostgresReports(url, 5000);
    expect(await reports.list(null, 10)).toMatchObject([{ id: 'a', route: null }]);
    expect(await gathered(reports.income(0, 10))).toMatchObject([{ id: 'a', route: null }]);

    const { payments, close } = await open();
    // An instance of the version before still runs, and knows no route.
    await put('b', 8);
    await payments.reserve(reservation('c', 'c'), 0, null);
    const listed = await reports.list(null, 10);
    expect(listed.map(({ id, route }) => [id, route])).toEqual([
      ['c', '/v1/paid/chain/wallet'],
      ['b', null],
      ['a', null],
    ]);
    await Promise.all([reports.close(), close()]);
  });

  test('gets new migrations one after the other, each whole or not at all', async () => {
    const first = { version: 1, sql: 'CREATE TABLE a (n BIGINT); INSERT INTO a VALUES (1);' };
    await run([first]);
    const second = { version: 2, sql: 'INSERT INTO a VALUES (2);' };
    const broken = { version: 4, sql: 'INSERT INTO a VALUES (4); INSERT INTO nowhere VALUES (4);' };
    await expect(run([first, second, broken])).rejects.toThrow('nowhere');
    expect([await versions(), await column('SELECT n FROM a ORDER BY n')]).toEqual([
      [1, 2],
      ['1', '2'],
    ]);
    const all = [first, second, { version: 4, sql: 'INSERT INTO a VALUES (4);' }];
    await Promise.all([run(all), run(all), run(all)]);
    expect([await versions(), await column('SELECT n FROM a ORDER BY n')]).toEqual([
      [1, 2, 4],
      ['1', '2', '4'],
    ]);
  });

  test('of an instance that died in the middle of a step is finished by the next', async () => {
    await run(STEPS);
    const died = new Client({ connectionString: url });
    died.on('error', () => {});
    await died.connect();
    await died.query('BEGIN; INSERT INTO ledger_migrations VALUES (500, 1); CREATE TABLE half (n BIGINT)');
    const next = run([...STEPS, { version: 500, sql: 'CREATE TABLE half (n BIGINT)' }]);
    await client.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%half%' AND pid <> pg_backend_pid() AND state LIKE 'idle in%'",
    );
    await next;
    expect((await versions()).at(-1)).toBe(500);
    await died.end();
  });

  test('of SQLite and of PostgreSQL are numbered alike', () => {
    expect(versionsOf(STEPS)).toEqual(expect.arrayContaining(versionsOf(stepsOf('sqlite'))));
  });
});
