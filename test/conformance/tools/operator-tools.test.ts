import { copyFileSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { embeddedEnvironment } from '../../../dev/serve.ts';
import { reconcileLedger } from '../../../scripts/lib/ledger/ledger-reconcile.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { priceOf } from '../../support/prices.ts';
import { type Run, runCommand } from '../../support/service/operator-command.ts';
import { createProcess } from '../../support/service/process.ts';
import { type Answer, NODE_ANSWERS, type Service, startService } from '../../support/service/service.ts';
import { inPlaceOfService } from '../../support/service/stopped-service-here.ts';
import { until, untilNothingIsOpen } from '../../support/service/workers.ts';
import { balanceOf, buyOnce, decoded, newBuyer, type Payment, present } from '../../support/usdc/buyer.ts';

const PATH = '/v1/paid/fees/estimate';
const PRICE = priceOf(PATH).units;
const BUYERS = 4;

let network: EmbeddedNetwork;
let folder: string;
let dataDir: string;
let service: Awaited<ReturnType<typeof createProcess>>;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  folder = mkdtempSync(join(tmpdir(), 'percall-operator-'));
  dataDir = join(folder, 'data');
  service = await createProcess(network, dataDir);
  await service.start();
});
afterAll(async () => {
  await service.kill();
  await network.stop();
  rmSync(folder, { recursive: true, force: true });
});

const environment = (more: Record<string, string>) => ({
  ...embeddedEnvironment(network),
  ...NODE_ANSWERS,
  DATA_DIR: dataDir,
  ...more,
});

/** Runs one of the operator's commands with the service's environment. */
const run = (script: 'ledger' | 'backup', args: string[], env: Record<string, string> = {}): Promise<Run> =>
  runCommand(script, args, { cwd: folder, env: environment(env) });

/** The work of `ledger reconcile`, in this process. */
const reconcile = (env: Record<string, string> = {}) =>
  inPlaceOfService(reconcileLedger, { env: environment(env), location: { dataDir } });

function rows<T>(file: string, sql: string): T[] {
  const db = new Database(file, { readonly: true });
  try {
    return db.prepare<[], T>(sql).all();
  } finally {
    db.close();
  }
}

const ledgerFile = () => join(dataDir, 'ledger.db');
const statesIn = (file: string) =>
  rows<{ nonce: Buffer; state: string }>(file, 'SELECT nonce, state FROM usdc_payments');
const totalIn = (file: string): bigint =>
  BigInt(
    rows<{ total: number }>(
      file,
      "SELECT coalesce(sum(amount), 0) AS total FROM usdc_payments WHERE state = 'settled'",
    )[0]!.total,
  );

/** Payments whose transactions are noted and wait for a block that is not mined. */
async function hangInFlight(count: number): Promise<{ payment: Payment; answer: Promise<Answer | null> }[]> {
  const buyers = await Promise.all(Array.from({ length: count }, () => newBuyer(network)));
  const payments = await Promise.all(buyers.map((buyer) => buyer.sign(service.origin, PATH)));
  await network.pauseMining();
  const hung = payments.map((payment) => ({
    payment,
    answer: present(service.origin, PATH, payment).catch(() => null),
  }));
  const sent =
    "SELECT count(*) AS n FROM usdc_payments WHERE state IN ('settling', 'unknown') AND transaction_hash IS NOT NULL";
  await until('everything is sent', () => rows<{ n: number }>(ledgerFile(), sent)[0]?.n === count);
  return hung;
}

/** Restores a copy into its own directory as the README says, and runs `look` when no payment is open any more. */
async function withRestored(copy: string, look: (restored: Service, file: string) => Promise<void>): Promise<void> {
  const restoredDir = mkdtempSync(join(folder, 'restored-'));
  const file = join(restoredDir, 'ledger.db');
  copyFileSync(copy, file);
  const restored = await startService(network, { dataDir: restoredDir, env: { RECONCILE_INTERVAL_MS: '500' } });
  try {
    await until('everything has ended', () => statesIn(file).every(({ state }) => state === 'settled'));
    await look(restored, file);
  } finally {
    await restored.stop();
  }
}

function expectAlreadyUsed(answer: Answer): void {
  expect(answer.status).toBe(402);
  expect(decoded(answer, 'payment-required').error).toBe('invalid_exact_evm_nonce_already_used');
}

// One service is looked at, copied and killed; then its ledger is reconciled and served again, and the copies are restored.
describe('the tools beside a service, and after it was killed', { shuffle: false }, () => {
  const bought: { payment: Payment; answer: Answer }[] = [];
  /** Sold after both copies. */
  const late: Payment[] = [];
  /** States in the copy made under load, as soon as it was made. */
  let held: ReturnType<typeof statesIn>;
  const copies = { underLoad: '', inFlight: '' };
  let soldEarlier: bigint;
  let soldInCopy: bigint;
  let sellerHas: bigint;

  test('the ledger command reports, while the service runs, the counts, payments without their payers, income that adds up and the bought routes', async () => {
    expect((await buyOnce(network, service.origin, PATH)).answer.status).toBe(200);
    const settled = rows<{ n: number }>(
      ledgerFile(),
      "SELECT count(*) AS n FROM usdc_payments WHERE state = 'settled'",
    )[0]!.n;
    const status = await run('ledger', ['status', '--json']);
    expect(status.code, status.stderr).toBe(0);
    expect(JSON.parse(status.stdout).sums).toContainEqual({
      rail: 'usdc',
      state: 'settled',
      count: settled,
      amount: String(BigInt(settled) * PRICE),
    });
    expect((await run('ledger', ['status'])).stdout).toContain('no open payment');

    const list = await run('ledger', ['list', '--state', 'settled', '--json', '--limit', '1000']);
    const { payments } = JSON.parse(list.stdout) as { payments: { nonce: string; route: string }[] };
    expect(payments).toHaveLength(settled);
    expect(new Set(payments.map(({ route }) => route))).toEqual(new Set([PATH]));
    const known = rows<{ payer: Buffer }>(ledgerFile(), 'SELECT DISTINCT payer FROM usdc_payments');
    for (const { payer } of known) expect(list.stdout).not.toContain(bytesToHex(payer).slice(2));

    const today = new Date().toISOString().slice(0, 10);
    const csv = await run('ledger', ['export', '--csv', '--from', '2026-01-01', '--to', today]);
    const lines = csv.stdout.split('\r\n').slice(1, -1);
    const total = lines.reduce((sum, line) => sum + Math.round(Number(line.split(',')[2]) * 1e6), 0);
    expect(new Set(lines.map((line) => line.split(',')[7]))).toEqual(new Set([PATH]));
    expect([lines.length, BigInt(total)]).toEqual([settled, await balanceOf(network, network.seller)]);
    expect((await run('ledger', ['export', '--csv', '--to', '2020-01-01'])).stdout.split('\r\n')).toHaveLength(2);
  });

  test('providers that contradicted others are listed and trusted again beside the running service', async () => {
    expect(await run('ledger', ['providers'])).toMatchObject({
      code: 0,
      stdout: 'no RPC provider is set apart or in dispute\n',
    });
    const put = new Database(ledgerFile());
    put
      .prepare("INSERT INTO provider_notes VALUES ('rpc.liar.example', 'apart', 'receipt', 'mined', 'null', ?, ?)")
      .run(Date.now(), Date.now() + 86_400_000);
    put.close();
    expect((await run('ledger', ['providers'])).stdout).toMatch(
      /^rpc\.liar\.example +apart +.* +mined +null +receipt$/m,
    );
    const unknown = await run('ledger', ['trust', 'rpc.other.example']);
    expect(unknown).toMatchObject({ code: 1, stdout: '' });
    expect(unknown.stderr).toMatch(/^failed: there is no note on rpc\.other\.example: /);
    const trusted = await run('ledger', ['trust', 'rpc.liar.example']);
    expect(trusted).toMatchObject({ code: 0, stdout: 'rpc.liar.example: 1 note ended\n' });
    expect(rows(ledgerFile(), 'SELECT host FROM provider_notes')).toEqual([]);
    expect((await buyOnce(network, service.origin, PATH)).answer.status).toBe(200);
  });

  test('the ledger command refuses to reconcile beside a running service', async () => {
    const refused = await run('ledger', ['reconcile']);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toMatch(/^failed: a service is running on .*stop it first\n$/);
  });

  test('backups are made under load, and while transactions are in flight', async () => {
    const earlier = statesIn(ledgerFile()).length;
    soldEarlier = totalIn(ledgerFile());
    const buyers = await Promise.all(Array.from({ length: BUYERS }, () => newBuyer(network)));
    let buying = true;
    const shopping = buyers.map(async (buyer) => {
      while (buying) {
        const payment = await buyer.sign(service.origin, PATH);
        bought.push({ payment, answer: await present(service.origin, PATH, payment) });
      }
    });
    // 1. Copies made while calls are being sold.
    await until('something is sold', () => bought.length >= 2 * BUYERS);
    const directory = join(folder, 'copies');
    const underLoad = await run('backup', ['--to', directory, '--with-chain']);
    expect(underLoad.code, underLoad.stderr).toBe(0);
    const made = underLoad.stdout.trimEnd().split('\n');
    expect(made.map((path) => basename(path).replace(/\d{8}T\d{6}Z/, '*'))).toEqual(['ledger-*.db', 'chain-*.db']);
    expect(readdirSync(directory).sort()).toEqual(made.map((path) => basename(path)).sort());
    for (const path of made) expect(statSync(path).mode & 0o777).toBe(0o600);
    copies.underLoad = made[0]!;
    held = statesIn(copies.underLoad);
    expect(held.length).toBeGreaterThan(earlier);
    buying = false;
    await Promise.all(shopping);
    expect(bought.map(({ answer }) => answer.status).filter((status) => status !== 200)).toEqual([]);

    // 2. A copy with payments whose transactions are in flight.
    const hung = await hangInFlight(3);
    const inFlight = await run('backup', ['--to', join(folder, 'in-flight')]);
    expect(inFlight.code, inFlight.stderr).toBe(0);
    copies.inFlight = inFlight.stdout.trim();
    soldInCopy = totalIn(copies.inFlight);
    expect(soldInCopy).toBe(soldEarlier + BigInt(bought.length) * PRICE);
    await network.resumeMining();
    // A settlement that took longer than its buyer's call ends after the answer.
    await untilNothingIsOpen(ledgerFile());
    for (const { payment, answer } of hung) bought.push({ payment, answer: (await answer)! });
    soldInCopy += BigInt(hung.length) * PRICE;

    // 3. Sold after the copy, so the copy does not have them.
    for (const buyer of buyers) {
      const payment = await buyer.sign(service.origin, PATH);
      expect(await present(service.origin, PATH, payment)).toMatchObject({ status: 200 });
      late.push(payment);
    }
    sellerHas = await balanceOf(network, network.seller);
    expect(sellerHas).toBe(soldEarlier + BigInt(bought.length + late.length) * PRICE);
  });

  test('the ledger command reconciles the payments that a killed service left, and says when the chain does not answer', async () => {
    const hung = await hangInFlight(2);
    await service.kill();
    for (const { answer } of hung) expect(await answer).toBeNull();
    const nonces = hung.map(({ payment }) => bytesToHex(payment.authorization.nonce));
    const before = await balanceOf(network, network.seller);

    const early = await run('ledger', ['reconcile', '--timeout', '1']);
    expect(early.code, early.stderr).toBe(1);
    expect(early.stdout.match(/ still unknown\n/g)).toHaveLength(2);
    const open = JSON.parse((await run('ledger', ['list', '--state', 'unknown', '--json'])).stdout);
    expect(open.payments.map(({ nonce }: { nonce: string }) => nonce).sort()).toEqual([...nonces].sort());

    await expect(reconcile({ CHAIN_ID: '5043' })).rejects.toThrow(
      'is of eip155:5042; the configuration says eip155:5043',
    );

    await network.resumeMining();
    const done = await run('ledger', ['reconcile', '--timeout', '60']);
    expect(done.code, done.stderr).toBe(0);
    expect(done.stdout.match(/^[0-9a-f]{32} settled 0x[0-9a-f]{64} in block \d+$/gm)).toHaveLength(2);
    expect(await balanceOf(network, network.seller)).toBe(before + 2n * PRICE);
    expect(await reconcile()).toMatchObject({ done: true, printed: '' });

    const next = await startService(network, { dataDir });
    try {
      for (const { payment } of hung) expect(await present(next.origin, PATH, payment)).toMatchObject({ status: 200 });
    } finally {
      await next.stop();
    }
    sellerHas = before + 2n * PRICE;
    expect(await balanceOf(network, network.seller)).toBe(sellerHas);
  });

  test('the backup made under load restores to a ledger that charges no payment twice and accounts for all it held', async () => {
    // Settled payments are redelivered, and the chain has the payments that the copy lacks.
    await withRestored(copies.underLoad, async (restored, file) => {
      const settled = new Set(statesIn(file).map(({ nonce }) => nonce.toString('hex')));
      for (const { payment, answer } of bought) {
        const again = await present(restored.origin, PATH, payment);
        const { nonce } = payment.authorization;
        if (settled.has(Buffer.from(nonce).toString('hex')))
          expect([again.status, again.body]).toEqual([200, answer.body]);
        else expectAlreadyUsed(again);
      }
      expect(settled.size).toBeGreaterThanOrEqual(held.filter(({ state }) => state === 'settled').length);
      expect(totalIn(file)).toBe(BigInt(settled.size) * PRICE);
    });
    expect(await balanceOf(network, network.seller)).toBe(sellerHas);
  });

  test('the backup made with transactions in flight restores to a ledger that finds them on the chain, and their buyers get their answers', async () => {
    const before = await balanceOf(network, network.seller);
    await withRestored(copies.inFlight, async (restored, file) => {
      expect(totalIn(file)).toBe(soldInCopy);
      for (const { payment, answer } of bought) {
        const again = await present(restored.origin, PATH, payment);
        expect(again.status).toBe(200);
        if (answer.status === 200) expect(again.body).toBe(answer.body);
        expect(decoded(again, 'payment-response')).toMatchObject({ success: true });
      }
      for (const payment of late) expectAlreadyUsed(await present(restored.origin, PATH, payment));
    });
    // Missing payments are on the chain and in the balance: those sold after the copy, and the two that were reconciled.
    expect(sellerHas - soldInCopy).toBe(BigInt(late.length + 2) * PRICE);
    expect(await balanceOf(network, network.seller)).toBe(before);
  });
});

test.each([
  ['ledger', ['--help'], 0, /^Shows the ledger/, /^$/],
  ['backup', ['--help'], 0, /^Copies the ledger/, /^$/],
  ['ledger', ['lsit'], 2, /^$/, /^usage: unknown command: lsit\n/],
  ['backup', ['here'], 2, /^$/, /^usage: /],
  [
    'ledger',
    ['status', '--data-dir', '/nonexistent'],
    1,
    /^$/,
    /^failed: there is no ledger\.db in \/nonexistent.*\n$/,
  ],
  ['backup', ['--data-dir', '/nonexistent'], 1, /^$/, /^failed: there is no ledger\.db in \/nonexistent.*\n$/],
  ['ledger', ['reconcile'], 1, /^$/, /^failed: the configuration has [^\n]*SELLER_ADDRESS is missing[^\n]*\n$/],
] as const)('the command %s %j ends with status %i and says why', async (script, args, code, stdout, stderr) => {
  const ended = await run(script, [...args], { SELLER_ADDRESS: '' });
  expect(ended.code, ended.stderr).toBe(code);
  expect(ended.stdout).toMatch(stdout);
  expect(ended.stderr).toMatch(stderr);
});
