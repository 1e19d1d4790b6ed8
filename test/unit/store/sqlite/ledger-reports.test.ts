import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { migrate, type Sqlite } from '../../../../src/lib/sqlite-file.ts';
import { createLedger } from '../../../../src/payment/ledger.ts';
import { stepsOf } from '../../../../src/store/db/migrate.ts';
import { openLedgerReports } from '../../../../src/store/reports.ts';
import { gathered } from '../../../support/gathered.ts';
import { channelState, channelTerms, depositSale, voucherSale } from '../../../support/ledger/channel-rows.ts';
import { openTestLedger, storesOf } from '../../../support/ledger/fresh-ledger.ts';
import { sale, storedIntent } from '../../../support/ledger/ledger-rows.ts';

const START = 1_800_000_000_000;
let folder: string;
let file: string;
let db: Sqlite;
let now: number;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'reports-'));
  file = join(folder, 'ledger.db');
  db = openTestLedger(file);
  now = START;
});
afterEach(() => {
  if (db.open) db.close();
  rmSync(folder, { recursive: true });
});

const openLedger = () => {
  const clock = { nowMs: () => now, sleep: async () => {} };
  const limits = { storeBytes: 1_000_000, keepSeconds: 900, maxDeliveries: 5, maxOpen: 0 };
  return createLedger({ store: storesOf(db).payments, clock, bootId: 'boot', ...limits });
};

/** A payment in a state; returns its id. */
async function pay(
  ledger: ReturnType<typeof openLedger>,
  state: 'reserved' | 'settling' | 'unknown' | 'settled' | 'failed',
) {
  const id = String(await ledger.reserve(sale(String(Math.random()), { amount: 1500n }), false));
  if (state === 'reserved') return id;
  await ledger.storeIntent(id, storedIntent());
  if (state === 'unknown') await ledger.unknown(id);
  if (state === 'settled') await ledger.settled(id, Buffer.alloc(32, 0xab), 9, 1500n);
  if (state === 'failed') await ledger.failed(id, 'cancelled');
  return id;
}

async function claim(amountMsat: bigint, own: boolean) {
  const store = storesOf(db).lightning;
  const key = { network: 'lnbtc:000000000019d6689c085ae165831e93', paymentHash: randomBytes(32) };
  const grant = own
    ? { requestHash: randomBytes(32), redeemUntil: now + 1000, route: '/v1/lightning/fees/forecast', protocol: 'x402' }
    : null;
  const caps = { dailyCap: 10, clientCap: 10, payeeCap: 10, openCap: 10 };
  const account = own
    ? null
    : { day: '2027-01-15', clientHash: randomBytes(32), payeeClientHash: randomBytes(32), ...caps };
  const terms = { payTo: randomBytes(33), amountMsat, claimedAt: now, keepUntil: now + 1000 };
  expect(await store.claim({ ...key, ...terms, grant, account })).toBe('claimed');
  return key;
}

describe('the status', () => {
  test('counts and sums each state of both rails, and finds the oldest open payment', async () => {
    const ledger = openLedger();
    for (const state of ['settled', 'settled', 'failed'] as const) await pay(ledger, state);
    now += 1000;
    const oldest = await pay(ledger, 'unknown');
    now += 1000;
    await pay(ledger, 'settling');
    await claim(25_000n, true);
    await claim(2n ** 70n, true);
    await claim(999n, false);
    const reports = openLedgerReports(file);
    const status = await reports.status();
    await reports.close();
    expect(status.sums).toEqual([
      { rail: 'usdc', state: 'reserved', count: 0, amount: 0n },
      { rail: 'usdc', state: 'settling', count: 1, amount: 1500n },
      { rail: 'usdc', state: 'unknown', count: 1, amount: 1500n },
      { rail: 'usdc', state: 'settled', count: 2, amount: 3000n },
      { rail: 'usdc', state: 'failed', count: 1, amount: 1500n },
      { rail: 'lightning', state: 'claimed', count: 2, amount: 25_000n + 2n ** 70n },
      { rail: 'lightning', state: 'delivered', count: 0, amount: 0n },
    ]);
    expect(status.oldestOpen).toEqual({ id: oldest, state: 'unknown', reservedAt: START + 1000 });
    // Two settled, one settling, one unknown; what failed is dropped.
    expect(status.replies).toEqual({ count: 4, bytes: 4 * 'reply'.length });
    expect(status.lightning).toEqual({ invoices: 0, facilitatorClaims: 1 });
  });

  test('of an empty ledger is all zeros, with nothing open', async () => {
    const reports = openLedgerReports(file);
    const { sums, oldestOpen, replies } = await reports.status();
    await reports.close();
    expect(sums.every(({ count, amount }) => count === 0 && amount === 0n)).toBe(true);
    expect(oldestOpen).toBeNull();
    expect(replies).toEqual({ count: 0, bytes: 0 });
  });
});

test('a ledger from before the Lightning rail is read as it is, and not changed', async () => {
  db.close();
  const old = join(folder, 'old.db');
  const first = new Database(old);
  migrate(first, stepsOf('sqlite').slice(0, 1));
  first.close();
  const before = readFileSync(old);
  const reports = openLedgerReports(old);
  expect(await reports.status()).toMatchObject({ lightning: null, replies: { count: 0, bytes: 0 } });
  expect(await gathered(reports.income(0, START))).toEqual([]);
  expect(await reports.list(null, 10)).toEqual([]);
  await reports.close();
  expect(readFileSync(old).equals(before)).toBe(true);
});

test('a ledger from before routes were stored is reported without them', async () => {
  const ledger = openLedger();
  const id = await pay(ledger, 'settled');
  await claim(25_000n, true);
  for (const table of ['usdc_payments', 'lightning_claims']) db.exec(`ALTER TABLE ${table} DROP COLUMN route`);
  const reports = openLedgerReports(file);
  expect(await reports.list(null, 10)).toMatchObject([{ id, route: null }]);
  expect(await gathered(reports.income(0, now + 1))).toMatchObject([{ route: null }, { route: null }]);
  await reports.close();
});

test('a sale in a channel is reported with what was charged, and a voucher by its nonce, because it has no transaction', async () => {
  const [payments, channels] = [storesOf(db).payments, storesOf(db).channels];
  await channels.note(channelTerms('a'), channelState(), START);
  await payments.reserve(depositSale('d', 'a', 100n), 0, null);
  await payments.move('d', ['reserved'], 'settled', { endedAt: START, block: 7, transaction: Buffer.alloc(32, 0xab) });
  const voucher = voucherSale('s', 'a', 150n, { price: 50n, reservedAt: START + 1 });
  await channels.charge(voucher, Buffer.from('reply'), START);
  await payments.reserve(depositSale('open', 'a', 175n, { price: 25n }), 0, null);
  const reports = openLedgerReports(file);
  const { sums, replies } = await reports.status();
  expect(sums.slice(0, 4)).toEqual([
    { rail: 'usdc', state: 'reserved', count: 1, amount: 25n },
    { rail: 'usdc', state: 'settling', count: 0, amount: 0n },
    { rail: 'usdc', state: 'unknown', count: 0, amount: 0n },
    { rail: 'usdc', state: 'settled', count: 2, amount: 150n },
  ]);
  expect(replies).toEqual({ count: 1, bytes: 5 });
  expect(await gathered(reports.income(START, START + 2))).toMatchObject([
    { id: 'd', amount: 100n, hash: Buffer.alloc(32, 0xab) },
    { id: 's', amount: 50n, hash: Buffer.from(voucher.nonce) },
  ]);
  await reports.close();
});

test('a missing ledger is not created', () => {
  expect(() => openLedgerReports(join(folder, 'none.db'))).toThrow();
});

describe('the list', () => {
  test('is newest first, of one state or of any, and ends at its limit', async () => {
    const ledger = openLedger();
    const ids: string[] = [];
    for (const state of ['settled', 'unknown', 'settled', 'unknown'] as const) ids.push(await pay(ledger, state));
    const reports = openLedgerReports(file);
    const listed = (state: 'unknown' | null, limit: number) =>
      reports.list(state, limit).then((rows) => rows.map(({ id }) => id));
    expect(await listed(null, 10)).toEqual([...ids].reverse());
    expect(await listed('unknown', 10)).toEqual([ids[3], ids[1]]);
    expect(await listed('unknown', 1)).toEqual([ids[3]]);
    await reports.close();
  });

  test('shows the route, and never the payer, the parameters, the client or the signature', async () => {
    await pay(openLedger(), 'settling');
    const reports = openLedgerReports(file);
    const [payment] = await reports.list(null, 10);
    await reports.close();
    expect(Object.keys(payment ?? {}).sort()).toEqual(
      ['id', 'state', 'amount', 'nonce', 'transaction', 'block', 'reservedAt', 'endedAt', 'route', 'protocol'].sort(),
    );
    expect(payment?.route).toBe('/v1/paid/chain/wallet');
  });
});

describe('the income', () => {
  test('contains settled payments and claims through our own routes, oldest first, within its bounds', async () => {
    const ledger = openLedger();
    const first = await pay(ledger, 'settled');
    await pay(ledger, 'failed');
    now += 10;
    const { paymentHash } = await claim(25_000n, true);
    await claim(999n, false);
    now += 10;
    const last = await pay(ledger, 'settled');
    await pay(ledger, 'unknown');
    const reports = openLedgerReports(file);
    const all = await gathered(reports.income(START, now + 1));
    expect(all).toEqual([
      {
        rail: 'usdc',
        id: first,
        amount: 1500n,
        at: START,
        hash: Buffer.alloc(32, 0xab),
        block: 9,
        route: '/v1/paid/chain/wallet',
        protocol: 'x402',
      },
      {
        rail: 'lightning',
        id: null,
        amount: 25_000n,
        at: START + 10,
        hash: paymentHash,
        block: null,
        route: '/v1/lightning/fees/forecast',
        protocol: 'x402',
      },
      {
        rail: 'usdc',
        id: last,
        amount: 1500n,
        at: START + 20,
        hash: Buffer.alloc(32, 0xab),
        block: 9,
        route: '/v1/paid/chain/wallet',
        protocol: 'x402',
      },
    ]);
    expect((await gathered(reports.income(START + 1, now))).map(({ at }) => at)).toEqual([START + 10]);
    await reports.close();
  });
});
