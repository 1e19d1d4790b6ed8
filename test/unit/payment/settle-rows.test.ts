import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Sqlite } from '../../../src/lib/sqlite-file.ts';
import { createLedger, type Ledger } from '../../../src/payment/ledger.ts';
import { createSettleRows, type SettleRows } from '../../../src/payment/settle-rows.ts';
import type { Found, Intent, LookupRank, Outcome, SettlingRail } from '../../../src/payment/settler.ts';
import type { LedgerStore, Payment } from '../../../src/store/ports/payments.ts';
import { openTestLedger, storesOf } from '../../support/ledger/fresh-ledger.ts';
import { hash32, reservation, sale, storedIntent } from '../../support/ledger/ledger-rows.ts';
import { createManualClock, type ManualClock } from '../../support/manual-clock.ts';

const WAIT_MS = 5000;
const CONTRACT = Buffer.alloc(20, 0x36);
const HASH = Buffer.from(hash32('transaction'));
const SETTLED: Outcome = { kind: 'settled', transaction: HASH, block: 9, paid: 500n };
const FAILED: Outcome = { kind: 'failed', reason: 'invalid_exact_evm_nonce_already_used' };

let folder: string;
let db: Sqlite;
let store: LedgerStore;
let ledger: Ledger;
let clock: ManualClock;
/** What the evidence says, in whose order it was asked, and how important that was. */
let verdict: Found | Error;
let lookups: { id: string; rank: LookupRank; fromBlock: number }[];
/** What the settler makes of an intent, and what it was given. */
let outcome: Outcome | Promise<Outcome>;
let given: Intent[];
let fences: (number | undefined)[];
let errors: object[];
let said: object[];
let ownOnly: boolean;
let isOn: boolean;
/** Done before the evidence answers. */
let before: () => Promise<unknown>;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'settle-rows-'));
  db = openTestLedger(join(folder, 'ledger.db'));
  store = storesOf(db).payments;
  clock = createManualClock(1_800_000_000_000);
  const limits = { storeBytes: 1e9, keepSeconds: 900, maxDeliveries: 5, maxOpen: 0 };
  ledger = createLedger({ store, clock, bootId: 'boot', ...limits });
  [verdict, lookups, outcome, given, fences, errors, said] = [{ kind: 'open' }, [], SETTLED, [], [], [], []];
  [ownOnly, isOn] = [false, true];
  before = async () => {};
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true });
});

function open(fencingToken?: number): SettleRows {
  const rail = (): SettlingRail => ({
    ownOnly,
    evidence: {
      lookup: async ({ nonce }, fromBlock, options) => {
        const row = await ledger.find({ ...sale('any'), nonce });
        await before();
        lookups.push({ id: row?.id ?? 'gone', rank: options.rank, fromBlock });
        if (verdict instanceof Error) throw verdict;
        return verdict;
      },
    },
    settler: {
      settle: (intents) => {
        given.push(...intents);
        return intents.map(async () => outcome);
      },
      unavailable: () => null,
      stop: async () => {},
    },
  });
  const watched: Ledger = {
    ...ledger,
    failed: (id, reason, asked) => {
      fences.push(asked);
      return ledger.failed(id, reason, asked);
    },
  };
  return createSettleRows({
    ledger: watched,
    railOf: (contract) => (isOn && CONTRACT.equals(contract) ? rail() : null),
    clock,
    waitMs: WAIT_MS,
    fencingToken,
    log: { info: (detail) => void said.push(detail), error: (detail) => void errors.push(detail) },
  });
}

/** A stored intent; `sent` where it was handed out before. */
async function stored(name: string, { sent = false, hasCode = false } = {}): Promise<Payment> {
  const id = String(await ledger.reserve(sale(name), false));
  await ledger.storeIntent(id, storedIntent('reply', { payerHasCode: hasCode }));
  if (sent) await ledger.noteBroadcast([{ id, transaction: HASH }]);
  return (await ledger.get(id)) as Payment;
}
async function unknown(name: string, more?: Parameters<typeof stored>[1]): Promise<Payment> {
  const { id } = await stored(name, more);
  await ledger.unknown(id);
  return (await ledger.get(id)) as Payment;
}
const intentOf = ({ id }: Payment): Intent => ({
  id,
  call: null,
  fromBlock: 7,
  broadcast: false,
  hasCode: false,
  authorization: {
    from: Buffer.alloc(20, 9),
    to: Buffer.alloc(20, 1),
    value: 500n,
    validAfter: 0n,
    validBefore: 1n,
    nonce: Buffer.alloc(32),
    signature: Buffer.alloc(65),
  },
});
const stateOf = async ({ id }: Pick<Payment, 'id'>) => (await ledger.get(id))?.state ?? null;
/** The clock goes on while work that reads the disk is done; the disk has its turns. */
async function pass(ms: number): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((next) => setImmediate(next));
  await clock.advance(ms);
}
const served = () => false;

describe('a fresh intent', () => {
  test('is sent at once, and its end is written with what was paid', async () => {
    const payment = await stored('a');
    expect(await open().settle(intentOf(payment), CONTRACT)).toMatchObject({
      id: payment.id,
      state: 'settled',
      block: 9,
      charged: 500n,
    });
    expect([given.map(({ id }) => id), lookups]).toEqual([[payment.id], []]);
  });

  test('that fails is failed under the lease that this process settles under', async () => {
    outcome = FAILED;
    const [one, other] = [await stored('a'), await stored('b')];
    expect(await open(17).settle(intentOf(one), CONTRACT)).toMatchObject({
      state: 'failed',
      reason: FAILED.reason,
    });
    await open().settle(intentOf(other), CONTRACT);
    expect(fences).toEqual([17, undefined]);
  });

  test('leaves a line for the operator: which payment, how it ended, and why where it failed', async () => {
    const [paid, failed] = [await stored('a'), await stored('b')];
    await open().settle(intentOf(paid), CONTRACT);
    outcome = FAILED;
    await open().settle(intentOf(failed), CONTRACT);
    expect(said).toEqual([
      { payment: paid.id, outcome: 'settled' },
      { payment: failed.id, outcome: 'failed', reason: FAILED.reason },
    ]);
  });

  test('without an end in time is unknown to its buyer, and ends all the same', async () => {
    const late = Promise.withResolvers<Outcome>();
    outcome = late.promise;
    const payment = await stored('a');
    const rows = open();
    const reported = rows.settle(intentOf(payment), CONTRACT);
    await pass(WAIT_MS);
    expect(await reported).toMatchObject({ state: 'unknown' });
    late.resolve(SETTLED);
    await rows.idle();
    expect(await stateOf(payment)).toBe('settled');
  });

  test('of a rail that is off stays as it is', async () => {
    isOn = false;
    const payment = await stored('a');
    expect(await open().settle(intentOf(payment), CONTRACT)).toMatchObject({ state: 'unknown' });
    expect([given, errors]).toEqual([[], []]);
  });

  test('returns null when its row was deleted, and leaves no timer', async () => {
    const payment = await stored('a');
    await ledger.abandon(payment.id);
    expect(await open().settle(intentOf(payment), CONTRACT)).toBeNull();
    expect([clock.pendingSleeps(), errors]).toEqual([[], []]);
  });
});

describe('a payment that is presented again', () => {
  test('with a call of its own is sent with that call, to the contract that its payer signed for', async () => {
    const payment = await unknown('deposit');
    const calldata = Buffer.from('the deposit');
    await store.move(payment.id, ['unknown'], 'unknown', { calldata });
    const row = (await ledger.get(payment.id)) as Payment;
    await open().resume(row);
    expect(given[0]?.call).toEqual({ to: payment.contract, data: calldata });
  });

  test('and again is looked up after what is more urgent, from the third lookup on', async () => {
    outcome = { kind: 'unknown' };
    const payment = await unknown('a', { sent: true });
    const rows = open();
    for (let time = 0; time < 4; time++) {
      await rows.resume(payment);
      await clock.advance(1000);
    }
    await rows.carry(payment.id);
    expect(lookups.map(({ rank }) => rank)).toEqual(['settle', 'settle', 'collect', 'collect', 'collect']);
  });

  test('is looked up first, and sent where the evidence leaves it open', async () => {
    const payment = await unknown('a', { sent: true, hasCode: true });
    expect(await open().resume(payment)).toMatchObject({ state: 'settled' });
    expect(lookups).toEqual([{ id: payment.id, rank: 'settle', fromBlock: 7 }]);
    const { payer: from, payTo: to, amount: value, validAfter, validBefore, nonce, signature } = payment;
    const authorization = { from, to, value, validAfter, validBefore, nonce, signature };
    expect(given).toEqual([
      { id: payment.id, call: null, fromBlock: 7, broadcast: true, hasCode: true, authorization },
    ]);
  });

  test.each<[string, Found, string]>([
    ['settled', SETTLED, 'settled'],
    ['failed', FAILED, 'failed'],
    ['unknown', { kind: 'unknown' }, 'unknown'],
  ])('is %s where the evidence says so, and is not sent', async (_, said, state) => {
    verdict = said;
    expect(await open().resume(await unknown('a', { sent: true }))).toMatchObject({ state });
    expect(given).toEqual([]);
  });

  test('is looked up once a second, however often its buyer asks; meanwhile it stays as it is', async () => {
    verdict = { kind: 'unknown' };
    const rows = open();
    const payment = await unknown('a', { sent: true });
    await rows.resume(payment);
    await clock.advance(999);
    for (let time = 0; time < 5; time++) expect(await rows.resume(payment)).toMatchObject({ state: 'unknown' });
    expect(lookups).toHaveLength(1);
    await clock.advance(1);
    verdict = SETTLED;
    expect(await rows.resume(payment)).toMatchObject({ state: 'settled' });
    expect(lookups).toHaveLength(2);
  });

  test('by several at once is looked up and sent once for all of them', async () => {
    const rows = open();
    const payment = await unknown('a', { sent: true });
    const ends = await Promise.all([rows.resume(payment), rows.resume(payment)]);
    expect(ends.map((end) => end?.state)).toEqual(['settled', 'settled']);
    expect([lookups.length, given.length]).toEqual([1, 1]);
  });

  test('stays open where the evidence cannot be read, which is said', async () => {
    verdict = new Error('the chain is away');
    const payment = await unknown('a', { sent: true });
    expect(await open().resume(payment)).toMatchObject({ state: 'unknown' });
    expect(errors).toMatchObject([{ payment: payment.id }]);
    expect(given).toEqual([]);
  });

  test('of a rail that is off, or without its signature, stays as it is', async () => {
    const payment = await unknown('a', { sent: true });
    isOn = false;
    expect(await open().resume(payment)).toMatchObject({ state: 'unknown' });
    isOn = true;
    expect(await open().resume({ ...payment, signature: null })).toMatchObject({ state: 'unknown' });
    expect([lookups, given, errors]).toEqual([[], [], []]);
  });

  test.each<[string, (payment: Payment) => Promise<unknown>]>([
    ['has ended', ({ id }) => ledger.failed(id, 'gone')],
    ['is gone', async ({ id }) => db.exec(`DELETE FROM usdc_payments WHERE id = '${id}'`)],
  ])('and %s while it was looked up is not sent', async (_, meanwhile) => {
    const payment = await unknown('a');
    const lookup = Promise.withResolvers<void>();
    verdict = { kind: 'open' };
    before = async () => {
      await meanwhile(payment);
      lookup.resolve();
    };
    await open().resume(payment);
    await lookup.promise;
    expect([given, errors]).toEqual([[], []]);
  });

  test('from before it was known whether its payer has code is treated as one that has', async () => {
    const payment = await unknown('a', { sent: true });
    db.exec('UPDATE usdc_payments SET payer_has_code = NULL, checked_block = NULL');
    await open().resume((await ledger.get(payment.id)) as Payment);
    expect(given).toMatchObject([{ hasCode: true, fromBlock: 0 }]);
  });
});

describe('where other ledgers sell to the same seller out of the same evidence', () => {
  beforeEach(() => {
    ownOnly = true;
    verdict = SETTLED;
  });

  test('a payment that was made before this ledger handed it over is not ours', async () => {
    expect(await open().resume(await unknown('a'))).toMatchObject({ state: 'failed', reason: 'payment_already_used' });
  });

  test('what this ledger handed over is its own', async () => {
    expect(await open().resume(await unknown('a', { sent: true }))).toMatchObject({ state: 'settled', charged: 500n });
  });

  test('what this ledger handed over in an earlier sale is its own', async () => {
    const first = await stored('a', { sent: true });
    await ledger.failed(first.id, 'invalid_exact_evm_transaction_failed');
    const id = String(await ledger.reserve(sale('a'), true));
    await ledger.storeIntent(id, storedIntent());
    await ledger.unknown(id);
    expect(await open().resume((await ledger.get(id)) as Payment)).toMatchObject({ id, state: 'settled' });
  });

  test('what shows as open is sent, and what shows as failed has failed for its own reason', async () => {
    verdict = { kind: 'open' };
    expect(await open().resume(await unknown('a'))).toMatchObject({ state: 'settled' });
    verdict = FAILED;
    expect(await open().resume(await unknown('b'))).toMatchObject({ state: 'failed', reason: FAILED.reason });
    expect(given).toHaveLength(1);
  });

  test('and on a rail of its own, whatever shows as paid counts', async () => {
    ownOnly = false;
    expect(await open().resume(await unknown('a'))).toMatchObject({ state: 'settled' });
  });
});

describe('a row of another process', () => {
  test('that was never sent is sent without a lookup', async () => {
    const payment = await stored('a');
    await open().carry(payment.id);
    expect([await stateOf(payment), lookups, given.length]).toEqual(['settled', [], 1]);
  });

  test('that was sent before, or failed before, is looked up first', async () => {
    const sent = await stored('a', { sent: true });
    await open().carry(sent.id);
    const before = await stored('b');
    await ledger.failed(before.id, 'invalid_exact_evm_transaction_failed');
    const id = String(await ledger.reserve(sale('b'), true));
    await ledger.storeIntent(id, storedIntent());
    await open().carry(id);
    expect(lookups).toMatchObject([
      { id: sent.id, rank: 'settle' },
      { id, rank: 'settle' },
    ]);
    expect(given).toHaveLength(2);
  });

  test('whose buyer got settlement_unknown is looked up, even when no transaction was noted', async () => {
    const payment = await unknown('a');
    verdict = SETTLED;
    await open().carry(payment.id);
    expect([await stateOf(payment), lookups.length, given]).toEqual(['settled', 1, []]);
  });

  test('that waits for no settlement is left alone', async () => {
    const id = String(await ledger.reserve(sale('a'), false));
    await open().carry(id);
    await open().carry('nobody');
    expect([await stateOf({ id }), given, lookups]).toEqual(['reserved', [], []]);
  });
});

describe('a round of reconciliation', () => {
  /** Rows straight into the store, many of them in one transaction. */
  async function putUnknown(ids: readonly string[]): Promise<void> {
    await Promise.all(ids.map((id) => store.reserve(reservation(id, id), 0, null)));
    const signature = Buffer.alloc(65, 1);
    await Promise.all(ids.map((id) => store.move(id, ['reserved'], 'settling', { signature })));
    await Promise.all(ids.map((id) => store.move(id, ['settling'], 'unknown', {})));
  }

  test('gives back a reservation that no call works on, brings the rest to its end, and leaves what is served', async () => {
    const reserved = String(await ledger.reserve(sale('reserved'), false));
    const [left, open_, mine] = [await stored('left', { sent: true }), await unknown('open'), await stored('mine')];
    const rows = open();
    await rows.reconcile(({ id }) => id === mine.id);
    await rows.idle();
    expect(await Promise.all([{ id: reserved }, left, open_, mine].map(stateOf))).toEqual([
      ...[null, 'settled', 'settled', 'settling'],
    ]);
    expect(lookups.map(({ rank }) => rank)).toEqual(['collect', 'collect']);
  });

  test('looks at a row again after pauses that double, so that old rows cost little', async () => {
    verdict = { kind: 'unknown' };
    const payment = await unknown('a', { sent: true });
    const rows = open();
    const at: number[] = [];
    for (let second = 0; second <= 70; second++) {
      const before = lookups.length;
      await rows.reconcile(served);
      if (lookups.length > before) at.push(second);
      await clock.advance(1000);
    }
    expect(at).toEqual([0, 1, 3, 7, 15, 31, 63]);
    expect(await stateOf(payment)).toBe('unknown');
  });

  test('looks up a hundred rows at most, and the next round goes on from there', async () => {
    verdict = { kind: 'unknown' };
    const ids = Array.from({ length: 250 }, (_, at) => `row ${String(at).padStart(4, '0')}`);
    await putUnknown(ids);
    const rows = open();
    const round = async () => {
      const before = lookups.length;
      await rows.reconcile(served);
      return lookups.slice(before).map(({ id }) => id);
    };
    expect(await round()).toEqual(ids.slice(0, 100));
    expect(await round()).toEqual(ids.slice(100, 200));
    expect(await round()).toEqual(ids.slice(200));
    // All were just looked at.
    expect(await round()).toEqual([]);
    await clock.advance(1000);
    expect(await round()).toEqual(ids.slice(0, 100));
    expect((await round())[0]).toBe(ids[100]);
  });

  test('goes on where the last one ended also where the rows before are due again: no row is starved', async () => {
    verdict = { kind: 'unknown' };
    const ids = Array.from({ length: 150 }, (_, at) => `row ${String(at).padStart(4, '0')}`);
    await putUnknown(ids);
    const rows = open();
    await rows.reconcile(served);
    await clock.advance(60_000);
    lookups.length = 0;
    await rows.reconcile(served);
    expect(lookups.map(({ id }) => id)).toEqual(ids.slice(100));
  });

  test('looks at a hundred rows, however many others are served or only reserved', async () => {
    verdict = { kind: 'unknown' };
    const names = (of: string, count: number) =>
      Array.from({ length: count }, (_, at) => `${of} ${String(at).padStart(4, '0')}`);
    const [mine, reserved] = [names('a mine', 110), names('b reserved', 110)];
    await putUnknown([...mine, 'c last']);
    await Promise.all(reserved.map((id) => store.reserve(reservation(id, id), 0, null)));
    await open().reconcile(({ id }) => mine.includes(id));
    expect(lookups.map(({ id }) => id)).toEqual(['c last']);
    expect((await ledger.countByState()).reserved).toBe(0);
  });

  test('marks the row of a disconnected buyer unknown until the evidence shows its end', async () => {
    verdict = { kind: 'unknown' };
    const payment = await stored('a', { sent: true });
    await open().reconcile(served);
    expect(await stateOf(payment)).toBe('unknown');
  });

  test('is not held up by rows whose turn has not come: it looks for a hundred that are due', async () => {
    verdict = { kind: 'unknown' };
    const ids = Array.from({ length: 180 }, (_, at) => `row ${String(at).padStart(4, '0')}`);
    await putUnknown(ids.slice(0, 90));
    const rows = open();
    await rows.reconcile(served);
    await putUnknown(ids.slice(90));
    lookups.length = 0;
    await rows.reconcile(served);
    expect(lookups.map(({ id }) => id)).toEqual(ids.slice(90));
  });

  test('waits for a look a tenth of what a buyer waits, and then goes on to the next row', async () => {
    const late = Promise.withResolvers<Outcome>();
    outcome = late.promise;
    await unknown('a', { sent: true });
    await unknown('b', { sent: true });
    const rows = open();
    let isOver = false;
    const round = rows.reconcile(served).then(() => {
      isOver = true;
    });
    await pass(WAIT_MS / 10 - 1);
    await pass(0);
    expect(given).toHaveLength(1);
    await pass(1);
    await pass(0);
    expect([given.length, isOver]).toEqual([2, false]);
    await pass(WAIT_MS / 10);
    await round;
    // What is under way is not begun again.
    await rows.reconcile(served);
    expect(given).toHaveLength(2);
    late.resolve(SETTLED);
    await rows.idle();
    expect((await ledger.countByState()).settled).toBe(2);
  });

  test('deletes expired replies', async () => {
    const payment = await stored('a');
    await open().settle(intentOf(payment), CONTRACT);
    expect(await store.replyBytes()).toBe(5);
    expect(await ledger.delivered(payment.id)).toBe(true);
    await clock.advance(900_001);
    await open().reconcile(served);
    expect(await store.replyBytes()).toBe(0);
  });
});
