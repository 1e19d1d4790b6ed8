import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { embeddedEnvironment } from '../../../dev/serve.ts';
import { moveLedger } from '../../../scripts/lib/ledger/ledger-copy.ts';
import { incomeCsv } from '../../../scripts/lib/ledger/ledger-csv.ts';
import { openReports } from '../../../scripts/lib/ledger/ledger-location.ts';
import { reconcileLedger } from '../../../scripts/lib/ledger/ledger-reconcile.ts';
import { listJson, listText, statusJson } from '../../../scripts/lib/ledger/ledger-text.ts';
import { describePostgresSteps } from '../../support/ledger/ledger-adapters.ts';
import { seedLedger } from '../../support/ledger/seed-ledger.ts';
import { proofNow, settleOver } from '../../support/lightning/settle-calls.ts';
import { freshDatabase } from '../../support/postgres/postgres-run.ts';
import { type Run, runCommand } from '../../support/service/operator-command.ts';
import { createProcess } from '../../support/service/process.ts';
import { type Answer, NODE_ANSWERS, type Service, startService } from '../../support/service/service.ts';
import { inPlaceOfService } from '../../support/service/stopped-service-here.ts';
import { until } from '../../support/service/workers.ts';
import { balanceOf, decoded, newBuyer, type Payment, present } from '../../support/usdc/buyer.ts';

const PATH = '/v1/paid/fees/estimate';
const PRICE = 500n;
/** The sums of the copy are literal. */
const OWN_PRICE = { PRICES: 'fees/estimate=0.0005' };

type Rows = Record<string, unknown>[];

// One move: a service is killed once, and its ledger is copied, looked at, reconciled and served from.
describePostgresSteps('a ledger that outgrows its machine', () => {
  let network: EmbeddedNetwork;
  /** The URLs of the database that the ledger is moved to, and of another. */
  let database: string;
  let other: string;
  let folder: string;
  let file: string;
  let service: Awaited<ReturnType<typeof createProcess>>;
  let instance: Service | null = null;
  let sold: { payment: Payment; answer: Answer }[];
  let hung: Payment[];
  const claimed = proofNow();
  beforeAll(async () => {
    network = await startEmbeddedNetwork();
    [database, other] = [await freshDatabase('template1'), await freshDatabase('template1')];
    folder = mkdtempSync(join(tmpdir(), 'percall-move-'));
    file = join(folder, 'data/ledger.db');
    service = await createProcess(network, join(folder, 'data'), { COLLECTOR: 'off', ...OWN_PRICE });
    await service.start();
  });
  afterAll(async () => {
    await instance?.stop();
    await service?.kill();
    await network?.stop();
    if (folder) rmSync(folder, { recursive: true, force: true });
  });

  const environment = (more: Record<string, string>) => ({
    ...embeddedEnvironment(network),
    ...NODE_ANSWERS,
    DATA_DIR: join(folder, 'data'),
    ...more,
  });
  const run = (script: 'ledger' | 'backup', args: string[], env: Record<string, string> = {}): Promise<Run> =>
    runCommand(script, args, { cwd: folder, env: environment(env) });
  /** The work of `ledger copy`, in this process. Returns what it says. */
  const copy = async (from: string, url: string): Promise<string> => {
    const said: string[] = [];
    await moveLedger({ from, url, nowMs: Date.now(), print: () => {}, say: (line) => void said.push(line) });
    return said.join('\n');
  };
  const shared = () => ({
    LEDGER_URL: database,
    LEDGER_CONNECT_TIMEOUT_MS: '20000',
    DATA_DIR: join(folder, 'instance'),
  });
  const reconcile = (options: { isChainStill?: boolean } = {}) =>
    inPlaceOfService(reconcileLedger, { env: environment(shared()), location: { url: database } }, options);
  const ask = async (text: string, url = database): Promise<Rows> => {
    const client = new Client({ connectionString: url });
    await client.connect();
    try {
      return (await client.query(text)).rows;
    } finally {
      await client.end();
    }
  };
  const inFile = (sql: string): Rows => {
    const db = new Database(file, { readonly: true });
    try {
      return db.prepare<[], Record<string, unknown>>(sql).safeIntegers().all();
    } finally {
      db.close();
    }
  };

  test('is not copied while a service uses its file', async () => {
    await expect(copy(file, database)).rejects.toThrow(/^a service is running on .*stop it first/);
    expect(existsSync(`${file}.moved`)).toBe(false);
  });

  test('is copied from a killed service row by row and table by table, and the counts are printed', async () => {
    const buyer = await newBuyer(network);
    sold = [];
    for (let at = 0; at < 3; at++) {
      const payment = await buyer.sign(service.origin, PATH);
      sold.push({ payment, answer: await present(service.origin, PATH, payment) });
    }
    expect(sold.map(({ answer }) => answer.status)).toEqual([200, 200, 200]);
    expect(await settleOver(service.origin, [claimed], 1)).toEqual(['success']);
    hung = [await buyer.sign(service.origin, PATH), await buyer.sign(service.origin, PATH)];
    await network.pauseMining();
    const lost = hung.map((payment) => present(service.origin, PATH, payment).catch(() => null));
    const sent = "SELECT id FROM usdc_payments WHERE state IN ('settling', 'unknown') AND transaction_hash IS NOT NULL";
    await until('both are sent', () => inFile(sent).length === hung.length);
    await service.kill();
    await Promise.all(lost);
    seedLedger(file);

    const copied = await run('ledger', ['copy', '--to', database]);
    expect(copied.code, copied.stderr).toBe(0);
    expect(copied.stdout).toMatch(/^usdc_payments +settled +5 +4611686018428\.389404 USDC$/m);
    expect(copied.stdout).toMatch(/^channels +- +1 +9223372036854\.775807 USDC$/m);
    expect(copied.stdout).toMatch(/^channel_operations +open +1 +9223372036854\.775807 USDC$/m);
    expect(copied.stdout).toMatch(/^lightning_claims +claimed +1 +1180591620717411303424 msat$/m);
    expect(copied.stderr).toContain('counts and sums of every table are the same on both sides');
    const tables = inFile("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'");
    expect(tables.length).toBeGreaterThan(15);
    for (const { name } of tables) {
      const [here, there] = [inFile(`SELECT * FROM ${name}`), await ask(`SELECT * FROM ${name}`)];
      expect(here.length, String(name)).toBeGreaterThan(0);
      expect(there.map(plain).sort(), String(name)).toEqual(here.map(plain).sort());
    }
    const open = "FROM usdc_payments WHERE state NOT IN ('settled', 'failed')";
    const order = async (rows: Rows | Promise<Rows>) => (await rows).map(({ id }) => id);
    expect(await order(ask(`SELECT id ${open} ORDER BY payer, place`))).toEqual(
      await order(inFile(`SELECT id ${open} ORDER BY payer, rowid`)),
    );
  });

  test('keeps a service and the commands that settle off the file, and says where it went, without the password', async () => {
    const { host, pathname } = new URL(database);
    const moved = new RegExp(
      `ledger\\.db was copied to ${host}${pathname} at 2\\S+Z, .*: set LEDGER_URL, or, .* delete `,
    );
    await expect(service.start()).rejects.toThrow(/^the service ended with 1:/);
    const [line] = service
      .log()
      .split('\n')
      .filter((text) => text.startsWith('percall does not start: '));
    expect(line).toMatch(moved);
    expect(line?.endsWith(`delete ${file}.moved`)).toBe(true);
    const settling = await run('ledger', ['reconcile', '--data-dir', join(folder, 'data')]);
    expect([settling.code, settling.stderr]).toEqual([1, expect.stringMatching(moved)]);
  });

  /** What the commands show of a ledger at a moment. */
  async function shownOf(location: { url: string } | { dataDir: string }, now: number) {
    const reports = openReports(location);
    try {
      const [all, settled] = [await reports.list(null, 50), await reports.list('settled', 2)];
      const lines: string[] = [];
      for await (const line of incomeCsv(reports.income(0, Number.MAX_SAFE_INTEGER))) lines.push(line);
      const status = statusJson(await reports.status(), now);
      return { status, list: listText(all).join('\n'), json: JSON.stringify(listJson(settled)), csv: lines.join('') };
    } finally {
      await reports.close();
    }
  }

  test('has the same status, list and export in both databases, and the commands show them', async () => {
    const now = Date.now();
    const here = await shownOf({ dataDir: join(folder, 'data') }, now);
    const there = await shownOf({ url: database }, now);
    for (const text of [here.list, here.json, here.csv]) expect(text.length).toBeGreaterThan(100);
    expect(there).toEqual(here);
    expect(there.status).toMatchObject({ oldestOpen: { id: expect.stringMatching(/^[0-9a-f]{32}$/) } });
    const list = await run('ledger', ['list'], shared());
    expect([list.code, list.stdout]).toEqual([0, `${there.list}\n`]);
    expect((await run('ledger', ['export', '--csv'], shared())).stdout).toBe(there.csv);
    expect((await run('ledger', ['status'], shared())).stdout).toContain('oldest open payment: ');
  });

  test('lists the providers that were copied with it, trusts one again, and refuses where there is no ledger', async () => {
    const listed = await run('ledger', ['providers'], shared());
    expect(listed.stdout, listed.stderr).toMatch(/^rpc\.a\.example +apart +.* +“mined” +null +receipt of 0xab$/m);
    expect(await run('ledger', ['trust', 'rpc.a.example'], shared())).toMatchObject({
      code: 0,
      stdout: 'rpc.a.example: 1 note ended\n',
    });
    expect(await ask('SELECT host FROM provider_notes')).toEqual([]);
    const none = await run('ledger', ['providers'], { LEDGER_URL: other });
    expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('the ledger is of version 0')]);
  });

  test('is not copied to a target with rows or without a ledger, nor from another version, and the reason is given', async () => {
    await expect(copy(file, database)).rejects.toThrow('is not empty (usdc_payments has rows)');
    const none = await run('ledger', ['status'], { LEDGER_URL: other });
    expect(none).toMatchObject({ code: 1, stdout: '' });
    expect(none.stderr).toMatch(/^failed: there is no ledger in 127\.0\.0\.1:\d+\/\w+\n$/);

    const changed = join(folder, 'other.db');
    for (const [version, word] of [
      [10, 'start and stop this service on it once'],
      [999, 'use the newer program'],
    ] as const) {
      copyFileSync(file, changed);
      const db = new Database(changed);
      db.pragma(`user_version = ${version}`);
      db.close();
      await expect(copy(changed, other)).rejects.toThrow(word);
    }
    const wrong = await run('ledger', ['copy', '--to', 'mysql://secret@host/ledger']);
    expect([wrong.code, wrong.stderr]).toEqual([1, 'failed: --to is not a postgres:// URL\n']);
  });

  test('leaves the target empty when the copy fails at its last tables, and is copied by a repeated copy', async () => {
    const broken = join(folder, 'broken/ledger.db');
    mkdirSync(join(folder, 'broken'));
    copyFileSync(file, broken);
    const db = new Database(broken);
    // What SQLite holds and PostgreSQL does not.
    db.prepare("UPDATE market_listings SET listing = 'a' || char(0)").run();
    db.close();
    const failed = await run('ledger', ['copy', '--from', broken, '--to', other]);
    expect(failed.code).toBe(1);
    expect(failed.stderr).toContain('self_tests: 100 %');
    expect(existsSync(`${broken}.moved`)).toBe(false);
    expect(await ask('SELECT id FROM usdc_payments', other)).toEqual([]);
    const good = await run('ledger', ['copy', '--from', file], { LEDGER_URL: other });
    expect(good.code, good.stderr).toBe(0);
    const { pathname } = new URL(database);
    expect(good.stderr).toMatch(new RegExp(`^ledger\\.db was already copied to .*${pathname} at .*: serve from one`));
    expect(await ask('SELECT id FROM usdc_payments', other)).toHaveLength(9);
  });

  test('is reconciled in the new database: the payments that the dead service left are finished', async () => {
    const early = await reconcile({ isChainStill: true });
    expect(early.done, early.said).toBe(false);
    expect(early.printed.match(/ still unknown\n/g)).toHaveLength(2);
    await network.resumeMining();
    const done = await run('ledger', ['reconcile', '--timeout', '60'], shared());
    expect(done.code, done.stderr).toBe(0);
    expect(done.stdout.match(/^[0-9a-f]{32} settled 0x[0-9a-f]{64} in block \d+$/gm)).toHaveLength(2);
    expect(await balanceOf(network, network.seller)).toBe(5n * PRICE);
    expect(await ask('SELECT * FROM instances')).toEqual([]);
  });

  test('serves on from the copy: what was paid for is redelivered, and used payments are refused', async () => {
    const env = { ...shared(), COLLECTOR: 'off' };
    instance = await startService(network, { dataDir: join(folder, 'instance'), env });
    const { origin } = instance;
    for (const { payment, answer } of sold) {
      const again = await present(origin, PATH, payment);
      expect([again.status, again.body]).toEqual([200, answer.body]);
      const otherClient = await present(origin, PATH, payment, '127.0.0.9');
      expect([otherClient.status, decoded(otherClient, 'payment-required').error]).toEqual([
        402,
        'payment_already_used',
      ]);
    }
    for (const payment of hung) expect(await present(origin, PATH, payment)).toMatchObject({ status: 200 });
    expect(await settleOver(origin, [claimed, proofNow()], 1)).toEqual(['duplicate_settlement', 'success']);
    expect(await balanceOf(network, network.seller)).toBe(5n * PRICE);
  });

  test('is read beside a running service, where reconcile and copy refuse and backup names the tools to use', async () => {
    await expect(reconcile()).rejects.toThrow(/^a service is running over .*stop it first$/);
    await expect(copy(file, database)).rejects.toThrow('a service is running over 127.0.0.1:');
    expect((await run('ledger', ['status'], shared())).stdout).toContain('no open payment');
    const backup = await run('backup', [], shared());
    expect(backup).toMatchObject({ code: 1, stdout: '' });
    expect(backup.stderr).toContain('pg_dump');
    // A named directory takes precedence.
    const named = await run('backup', ['--data-dir', join(folder, 'data'), '--to', join(folder, 'copies')], shared());
    expect(named.code, named.stderr).toBe(0);
    expect((await run('ledger', ['status', '--data-dir', join(folder, 'data')], shared())).stdout).toContain(
      'oldest open',
    );
  });
});

/** A row as text, the same for both databases; without the place, which only one of them has. */
function plain({ place: _place, ...row }: Record<string, unknown>): string {
  const cells = Object.entries(row).map(([name, value]) => [name, cell(value)]);
  return JSON.stringify(cells.sort(([one], [other]) => (String(one) < String(other) ? -1 : 1)));
}

function cell(value: unknown): string | null {
  if (value === null) return null;
  if (typeof value === 'boolean') return value ? '1' : '0';
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : String(value);
}
