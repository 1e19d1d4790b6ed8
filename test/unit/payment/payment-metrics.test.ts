import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Unavailable } from '../../../src/errors.ts';
import type { Sqlite } from '../../../src/lib/sqlite-file.ts';
import type { Sold } from '../../../src/payment/call.ts';
import { chargedSale } from '../../../src/payment/channels/voucher-sale.ts';
import { createLedger, type Ledger } from '../../../src/payment/ledger.ts';
import { countRefusals, createPaymentMetrics, publishMaintenance } from '../../../src/payment/metrics.ts';
import { PaymentRefused, refusalName } from '../../../src/payment/refusal.ts';
import type { VoucherSale } from '../../../src/store/ports/channels.ts';
import type { LightningStore } from '../../../src/store/ports/lightning.ts';
import type { LedgerStore, Payment } from '../../../src/store/ports/payments.ts';
import { channelState, channelTerms, depositSale, voucherSale } from '../../support/ledger/channel-rows.ts';
import { openTestLedger, storesOf } from '../../support/ledger/fresh-ledger.ts';
import { sale, storedIntent } from '../../support/ledger/ledger-rows.ts';

let folder: string;
let store: LedgerStore;
let claims: LightningStore;
let registry: Registry;
let db: Sqlite;
let now: number;
const clock = { nowMs: () => now, sleep: async () => {} };

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'metrics-'));
  db = openTestLedger(join(folder, 'ledger.db'));
  store = storesOf(db).payments;
  claims = storesOf(db).lightning;
  registry = new Registry();
  now = 1_800_000_000_000;
});
afterEach(async () => {
  await store.close().catch(() => {});
  rmSync(folder, { recursive: true });
});

function counted(bootId = 'boot') {
  const metrics = createPaymentMetrics(registry, {
    store,
    clock,
    storeBytes: 1000,
    rails: ['a', 'b'],
    railOf: () => 'a',
  });
  const limits = { storeBytes: 1000, keepSeconds: 900, maxDeliveries: 5, maxOpen: 0 };
  return { metrics, ledger: createLedger({ store, clock, bootId, ...limits, onMove: metrics.onMove }) };
}

/** As a voucher's sale is stored. */
function sell(ledger: Ledger, voucher: VoucherSale): Promise<Payment | null> {
  const reply = Buffer.from('reply');
  return ledger.keepPaid(reply, async (row, keepUntil) => {
    const sold = { ...voucher, ...row };
    return chargedSale(sold, await storesOf(db).channels.charge(sold, reply, keepUntil));
  });
}

async function reserve(ledger: Ledger): Promise<string> {
  return String(await ledger.reserve(sale(String(Math.random()), { amount: 1500n, payer: randomBytes(20) }), false));
}

/** A sample's value, or null where there is none. */
async function sample(name: string, labels: Record<string, string | number> = {}): Promise<number | null> {
  const samples = (await registry.getMetricsAsJSON()).flatMap((metric) =>
    (metric.values as { value: number; labels: object; metricName?: string }[]).map((one) => ({
      ...one,
      name: one.metricName ?? metric.name,
    })),
  );
  const found = samples.find((one) => one.name === name && JSON.stringify(one.labels) === JSON.stringify(labels));
  return found?.value ?? null;
}
const protocols = (protocol: string) => sample('payment_protocol_total', { protocol });
const moves = (state: string, rail = 'usdc') => sample('payment_moves_total', { rail, state });

test('a deposit into a channel counts as settled with what it paid for, not with the rest', async () => {
  const { metrics } = counted();
  await storesOf(db).channels.note(channelTerms('a'), channelState(), now);
  await store.reserve(depositSale('d', 'a', 1500n, { price: 1500n, amount: 9_000_000n }), 0, null);
  await store.move('d', ['reserved'], 'settled', { block: 7, endedAt: now });
  metrics.onMove('d', 'settled');
  expect(await sample('payment_settled_usdc_total')).toBe(0.0015);
  expect(await sample('payment_income_usdc_total', { rail: 'a' })).toBe(0.0015);
});

test('a sale for a voucher is counted without a read of its row', async () => {
  store = { ...store, get: () => Promise.reject(new Error('a row is read')) };
  const { ledger, metrics } = counted();
  expect(await Promise.all(['x402', 'l402', 'mpp'].map(protocols))).toEqual([0, 0, 0]);
  await storesOf(db).channels.note(channelTerms('a'), channelState(), now);
  await sell(ledger, voucherSale('', 'a', 500n, { price: 500n, amount: 500n }));
  expect(await sample('payment_settled_usdc_total')).toBe(0.0005);
  expect(await sample('payment_income_usdc_total', { rail: 'a' })).toBe(0.0005);
  expect(await sample('payment_settled_total', { rail: 'a' })).toBe(1);
  expect(await Promise.all(['x402', 'l402', 'mpp'].map(protocols))).toEqual([1, 0, 0]);
  const sold = await sell(ledger, voucherSale('', 'a', 600n, { protocol: 'mpp' }));
  // A row of an earlier version has no protocol.
  metrics.onMove('b', 'settled', { ...(sold as Payment), protocol: null });
  expect(await Promise.all(['x402', 'l402', 'mpp'].map(protocols))).toEqual([2, 0, 1]);
});

test('a sale for a contract that no rail has is counted as of another rail', async () => {
  const metrics = createPaymentMetrics(registry, { store, clock, storeBytes: 1, rails: ['a'], railOf: () => null });
  await storesOf(db).channels.note(channelTerms('a'), channelState(), now);
  await store.reserve(depositSale('d', 'a', 1500n, { price: 1500n }), 0, null);
  await store.move('d', ['reserved'], 'settled', { block: 7, endedAt: now });
  metrics.onMove('d', 'settled', (await store.get('d')) ?? undefined);
  expect(await sample('payment_settled_total', { rail: 'other' })).toBe(1);
  expect(await sample('payment_income_usdc_total', { rail: 'other' })).toBe(0.0015);
});

test('each move that happened is counted once, and one that did not is not', async () => {
  const { ledger } = counted();
  expect(await moves('settled')).toBe(0);
  const [paid, refused, unsure, given] = [
    await reserve(ledger),
    await reserve(ledger),
    await reserve(ledger),
    await reserve(ledger),
  ];
  for (const id of [paid, refused, unsure]) await ledger.storeIntent(id, storedIntent());
  await ledger.release(given);
  expect(await ledger.release(paid)).toBe(false);
  now += 700;
  await ledger.settled(paid, randomBytes(32), 9, 1500n);
  expect(await ledger.settled(paid, randomBytes(32), 9, 1500n)).toBe(false);
  await ledger.failed(refused, 'cancelled');
  await ledger.unknown(unsure);
  const states = ['reserved', 'released', 'settling', 'settled', 'failed', 'unknown'];
  expect(await Promise.all(states.map((state) => moves(state)))).toEqual([4, 1, 3, 1, 1, 1]);
  expect(await sample('payment_settled_usdc_total')).toBe(0.0015);
  expect(await sample('payment_settled_total', { rail: 'a' })).toBe(1);
  expect(await sample('payment_settled_total', { rail: 'b' })).toBe(0);
  // A rail has its counter from the start, so that an alert can compare it with what the rail cost.
  expect(await Promise.all(['a', 'b'].map((rail) => sample('payment_income_usdc_total', { rail })))).toEqual([
    0.0015, 0,
  ]);
  expect(await sample('payment_settlement_duration_seconds_sum', { outcome: 'settled' })).toBe(0.7);
  expect(await sample('payment_settlement_duration_seconds_count', { outcome: 'failed' })).toBe(1);
});

test('what recovery takes over is counted, and its settlement adds to the total but not to the durations', async () => {
  const dead = counted('dead').ledger;
  await reserve(dead);
  const sent = await reserve(dead);
  await dead.storeIntent(sent, storedIntent());
  await dead.noteBroadcast([{ id: sent, transaction: randomBytes(32) }]);
  registry = new Registry();
  const { ledger } = counted('alive');
  await ledger.recover();
  await ledger.settled(sent, randomBytes(32), 9, 1500n);
  expect(await Promise.all(['released', 'unknown', 'settled'].map((state) => moves(state)))).toEqual([1, 1, 1]);
  expect(await sample('payment_settled_usdc_total')).toBe(0.0015);
  expect(await sample('payment_settlement_duration_seconds_count', { outcome: 'settled' })).toBeNull();
});

test('open payments are counted by state, with the age of the oldest, and without an age when none is open', async () => {
  const { ledger } = counted();
  expect(await sample('payment_oldest_open_timestamp_seconds')).toBeNull();
  const first = await reserve(ledger);
  now += 5000;
  const second = await reserve(ledger);
  await ledger.storeIntent(second, storedIntent());
  expect(await sample('payments_open', { state: 'reserved' })).toBe(1);
  expect(await sample('payments_open', { state: 'settling' })).toBe(1);
  expect(await sample('payments_open', { state: 'unknown' })).toBe(0);
  expect(await sample('payment_oldest_open_timestamp_seconds')).toBe(1_800_000_000);
  expect(await sample('payment_reply_bytes')).toBe(5);
  expect(await sample('payment_reply_bytes_limit')).toBe(1000);
  await ledger.release(first);
  expect(await sample('payment_oldest_open_timestamp_seconds')).toBe(1_800_000_005);
});

test('a ledger that cannot be read removes its own gauges, and no other metric', async () => {
  const { ledger, metrics } = counted();
  await ledger.storeIntent(await reserve(ledger), storedIntent());
  expect(await sample('payments_open', { state: 'settling' })).toBe(1);
  expect(await sample('payment_oldest_open_timestamp_seconds')).toBe(1_800_000_000);
  await store.close();
  metrics.onMove('an id', 'settled');
  expect(await moves('settled')).toBe(1);
  expect(await sample('payment_settled_usdc_total')).toBe(0);
  expect(await sample('payments_open', { state: 'settling' })).toBeNull();
  expect(await sample('payment_oldest_open_timestamp_seconds')).toBeNull();
  expect(await sample('payment_reply_bytes')).toBeNull();
});

test('a settlement is timed once, and one without a waiting buyer is timed only when it has ended', async () => {
  const { metrics } = counted();
  const ids = { settled: 'paid', failed: 'refused', unknown: 'unsure', null: 'gone' } as const;
  for (const id of Object.values(ids)) metrics.onMove(id, 'settling');
  now += 1500;
  metrics.onLeft(ids.settled, 'settled');
  metrics.onLeft(ids.failed, 'failed');
  metrics.onLeft(ids.unknown, 'unknown');
  metrics.onLeft(ids.null, null);
  for (const id of Object.values(ids)) metrics.onMove(id, 'failed');
  const count = (outcome: string) => sample('payment_settlement_duration_seconds_count', { outcome });
  expect([await count('settled'), await count('failed'), await count('unknown')]).toEqual([1, 1, null]);
  expect(await sample('payment_settlement_duration_seconds_sum', { outcome: 'settled' })).toBe(1.5);
});

test('Lightning is counted by what its store has done: offered, claimed once, delivered once, others’ claims apart', async () => {
  const watched = counted().metrics.watchClaims(claims);
  const key = () => ({ network: 'lnbtc:000000000019d6689c085ae165831e93', paymentHash: randomBytes(32) });
  const terms = { payTo: randomBytes(33), amountMsat: 25_000n };
  const [own, foreign] = [key(), key()];
  const requestHash = randomBytes(32);
  await watched.recordInvoice(
    { ...own, ...terms, requestHash, issuedAt: now, forgetAt: now + 1000 },
    Buffer.from('reply'),
  );
  const times = { claimedAt: now, keepUntil: now + 1000 };
  // The same room again, on a rail of its own.
  expect(await sample('payment_lightning_reply_bytes')).toBe(5);
  expect(await sample('payment_reply_bytes')).toBe(0);
  const claim = {
    ...own,
    ...terms,
    ...times,
    grant: { requestHash, redeemUntil: now + 1000, route: '/v1/lightning/a', protocol: 'x402' },
    account: null,
  };
  expect(await watched.claim(claim)).toBe('claimed');
  expect(await watched.claim(claim)).toBe('duplicate');
  expect(await watched.claim({ ...foreign, ...terms, ...times, grant: null, account: null })).toBe('claimed');
  expect(await watched.delivered(own, now, now + 1000)).toBe(true);
  expect(await watched.delivered(own, now, now + 1000)).toBe(false);
  const states = ['offered', 'claimed', 'delivered'];
  expect(await Promise.all(states.map((state) => moves(state, 'lightning')))).toEqual([1, 1, 1]);
  expect(await moves('claimed', 'facilitator')).toBe(1);
  expect(await sample('payment_claimed_msat_total')).toBe(25_000);
  expect(await protocols('x402')).toBe(1);
});

test('a payment hash that two payees claim is counted once, whoever comes first', async () => {
  const watched = counted().metrics.watchClaims(claims);
  const contested = () =>
    Promise.all(['ours', 'others'].map((payee) => sample('lightning_contested_hashes_total', { payee })));
  const key = () => ({ network: 'lnbtc:000000000019d6689c085ae165831e93', paymentHash: randomBytes(32) });
  const terms = { amountMsat: 25_000n, claimedAt: now, keepUntil: now + 1000 };
  const [ours, theirs] = [Buffer.alloc(33, 2), Buffer.alloc(33, 3)];
  const caps = { dailyCap: 100, clientCap: 100, payeeCap: 100, openCap: 100 };
  const hashes = { clientHash: randomBytes(32), payeeClientHash: randomBytes(32) };
  const account = { day: '2027-01-15', ...hashes, ...caps };
  const grant = { requestHash: randomBytes(32), redeemUntil: now + 1000, route: '/v1/lightning/a', protocol: 'x402' };
  const settle = (of: ReturnType<typeof key>, payTo: Uint8Array) =>
    watched.claim({ ...of, ...terms, payTo, grant: null, account });
  const sell = (of: ReturnType<typeof key>) => watched.claim({ ...of, ...terms, payTo: ours, grant, account: null });
  expect(await contested()).toEqual([0, 0]);

  // One payee that comes again contests nothing.
  const one = key();
  expect([await settle(one, ours), await settle(one, ours), await sell(key())]).toEqual([
    'claimed',
    'duplicate',
    'claimed',
  ]);
  expect(await contested()).toEqual([0, 0]);
  // Two payees at the facilitator, which may be one person's keys; then ours against a claim there, which it replaces; then another's against ours.
  expect([await settle(one, theirs), await settle(one, theirs)]).toEqual(['duplicate', 'duplicate']);
  expect(await contested()).toEqual([0, 1]);
  const replaced = key();
  expect([await settle(replaced, theirs), await sell(replaced)]).toEqual(['claimed', 'claimed']);
  expect(await contested()).toEqual([1, 1]);
  const sold = key();
  expect([await sell(sold), await settle(sold, theirs)]).toEqual(['claimed', 'duplicate']);
  expect(await contested()).toEqual([2, 1]);
});

test('a paid answer is counted by rail and route, with the time that its buyer has waited; a refusal is not', async () => {
  const { timed } = counted().metrics;
  const sold = { body: new Uint8Array() } as Sold;
  const sell = timed('a', async ({ isRefused }: { route: string; isRefused: boolean }) => {
    now += 1500;
    if (isRefused) throw new PaymentRefused('expired');
    return sold;
  });
  const call = { route: '/v1/paid/x', isRefused: false };
  expect(await sample('payment_answer_duration_seconds_count', { rail: 'a' })).toBe(0);
  expect(await sell(call, {} as never)).toBe(sold);
  await expect(sell({ ...call, isRefused: true }, {} as never)).rejects.toThrow('expired');
  expect(await sample('payment_answers_total', { rail: 'a', route: '/v1/paid/x' })).toBe(1);
  expect(await sample('payment_answer_duration_seconds_count', { rail: 'a' })).toBe(1);
  expect(await sample('payment_answer_duration_seconds_sum', { rail: 'a' })).toBe(1.5);
});

test('refusals are counted by reason, code or fault, and no third party’s words make a series', async () => {
  const count = countRefusals(registry);
  const onRefused = (surface: string, error: unknown) =>
    count(
      surface,
      refusalName(error, (reason) => reason === 'expired'),
    );
  const reasons = (reason: string) => sample('payment_refusals_total', { surface: 'paid', reason });
  onRefused('paid', new PaymentRefused('expired'));
  onRefused('paid', new PaymentRefused('expired'));
  onRefused('paid', new Unavailable('reply_store_full', 'x'));
  onRefused('paid', new Error('a bug'));
  expect(await Promise.all(['expired', 'reply_store_full', 'internal'].map(reasons))).toEqual([2, 1, 1]);
  for (let word = 0; word < 300; word++) onRefused('paid', new PaymentRefused(`word ${word}`));
  onRefused('paid', new PaymentRefused('expired'));
  expect(await Promise.all(['word 0', 'word 299', 'other', 'expired'].map(reasons))).toEqual([null, null, 300, 3]);
});

test('whether the ledger takes writes is asked at each scrape', async () => {
  let ping = async () => {};
  store = { ...store, ping: () => ping() };
  counted();
  expect(await sample('ledger_writable')).toBe(1);
  ping = () => Promise.reject(new Error('the ledger cannot be written: no space left on device'));
  expect(await sample('ledger_writable')).toBe(0);
  ping = async () => {};
  expect(await sample('ledger_writable')).toBe(1);
});

test('which rounds of maintenance fail is read at each scrape', async () => {
  const failing = { refresh: false, reconcile: false };
  publishMaintenance(registry, () => failing);
  const values = async () =>
    Promise.all(['refresh', 'reconcile'].map((round) => sample('payment_maintenance_failing', { round })));
  expect(await values()).toEqual([0, 0]);
  failing.refresh = true;
  expect(await values()).toEqual([1, 0]);
  failing.refresh = false;
  expect(await values()).toEqual([0, 0]);
});
