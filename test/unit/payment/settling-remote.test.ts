import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/lib/clock.ts';
import { createLedger, type Ledger } from '../../../src/payment/ledger.ts';
import type { Intent } from '../../../src/payment/settler.ts';
import type { LeaderLink, LeaderReport } from '../../../src/payment/settling.ts';
import { createRemoteSettling } from '../../../src/payment/settling-remote.ts';
import type { LedgerStore } from '../../../src/store/ports/payments.ts';
import { openTestLedger, storesOf } from '../../support/ledger/fresh-ledger.ts';
import { sale, storedIntent } from '../../support/ledger/ledger-rows.ts';

/** The other process ends a row long before this is over, also where the machine pauses. */
const LONG_MS = 60_000;
/** A test waits for all of it. */
const SHORT_MS = 600;

let folder: string;
let stores: LedgerStore[];
let serving: Ledger;
let settling: Ledger;
/** What the other process reported last, and why that does not count. */
let report: LeaderReport | null;
let staleReason: string | null;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'percall-settling-'));
  stores = [];
  serving = open('serving');
  [report, staleReason] = [null, null];
  settling = open('settling');
});
afterEach(async () => {
  for (const store of stores) await store.close();
  rmSync(folder, { recursive: true, force: true });
});

function open(bootId: string): Ledger {
  const store = storesOf(openTestLedger(join(folder, 'ledger.db'))).payments;
  stores.push(store);
  const limits = { storeBytes: 1000, keepSeconds: 900, maxDeliveries: 5, maxOpen: 0 };
  return createLedger({ store, clock: systemClock, bootId, ...limits });
}

/** A stored intent of the serving process. */
async function intent(): Promise<string> {
  const id = String(await serving.reserve(sale(String(Math.random())), false));
  await serving.storeIntent(id, storedIntent());
  return id;
}

const CONTRACT = Buffer.alloc(20, 0x36);
const intentOf = (id: string): Intent => ({
  id,
  call: null,
  fromBlock: 0,
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

/** Settlement by a process that does this with each row it is asked for, and says when it has ended, or does not. */
function handTo(work: (id: string) => Promise<unknown>, notifies: boolean, waitMs = LONG_MS) {
  let tell = (_id: string) => {};
  const asked: string[] = [];
  const left: [string, string | null][] = [];
  const leader: LeaderLink = {
    ask: (id) => {
      asked.push(id);
      void work(id).then(() => notifies && tell(id));
    },
    onEnded: (listener) => {
      tell = listener;
    },
    report: () => report,
    staleReason: () => staleReason,
  };
  const onLeft = (id: string, state: string | null) => void left.push([id, state]);
  const log = { warn: () => {} };
  const remote = createRemoteSettling({ ledger: serving, leader, clock: systemClock, waitMs, onLeft, log });
  return { remote, asked, left };
}

const settle = (id: string) => settling.settled(id, randomBytes(32), 7, 500n);

describe('an intent that is handed over', () => {
  test.each([
    ['is notified', true],
    ['is not notified, and is found in the ledger', false],
  ])('ends as the other process wrote it, when the end %s', async (_how, notifies) => {
    const { remote, asked, left } = handTo(settle, notifies);
    const id = await intent();
    expect(await remote.settle(intentOf(id), CONTRACT)).toMatchObject({ id, state: 'settled', block: 7 });
    expect([asked, left]).toEqual([[id], [[id, 'settled']]]);
  });

  test('that failed is returned as failed', async () => {
    const { remote } = handTo((id) => settling.failed(id, 'expired'), true);
    expect(await remote.settle(intentOf(await intent()), CONTRACT)).toMatchObject({
      state: 'failed',
      reason: 'expired',
    });
  });

  test('is unknown when the other process does not end it in time, and may still end later', async () => {
    const { remote, left } = handTo(async () => {}, false, SHORT_MS);
    const id = await intent();
    expect(await remote.settle(intentOf(id), CONTRACT)).toMatchObject({ id, state: 'unknown' });
    expect(left).toEqual([[id, 'unknown']]);
    expect(await settle(id)).toBe(true);
  });

  test('is unknown at once when the other process says that it cannot end it now', async () => {
    // Longer than a test may take.
    const { remote } = handTo(async () => {}, true, 600_000);
    expect(await remote.settle(intentOf(await intent()), CONTRACT)).toMatchObject({ state: 'unknown' });
  });

  test('wakes every call that waits for it', async () => {
    const { remote } = handTo(settle, true);
    const id = await intent();
    await serving.unknown(id);
    const row = await serving.get(id);
    const ends = await Promise.all([remote.resume(row!), remote.resume(row!)]);
    expect(ends.map((end) => end?.state)).toEqual(['settled', 'settled']);
  });

  test('that was released meanwhile returns null, and nothing is written', async () => {
    const { remote } = handTo(() => settling.recover(), true);
    expect(await remote.settle(intentOf(await intent()), CONTRACT)).toBeNull();
  });
});

test('maintenance releases reservations that no call serves, and leaves intents and other processes’ rows alone', async () => {
  const { remote } = handTo(async () => {}, false);
  const [served, stored] = [await intent(), await intent()];
  const reserved = String(await serving.reserve(sale('reserved'), false));
  await remote.reconcile(({ id }) => id === served);
  expect((await serving.get(served))?.state).toBe('settling');
  expect((await serving.get(stored))?.state).toBe('unknown');
  expect(await serving.get(reserved)).toBeNull();
});

describe('what the other process reported', () => {
  const [PAYER, OTHER] = [Buffer.alloc(20, 7), Buffer.alloc(20, 8)];
  const WELL = { unavailable: null, codeRefused: null, payers: [] };
  const newRemote = () => handTo(async () => {}, false).remote;

  test('is each rail’s status by name, until it reports otherwise', () => {
    const remote = newRemote();
    const [exact, gateway] = [remote.status('usdc-exact'), remote.status('usdc-gateway')];
    const probes = { gateway: { ok: false, detail: 'away' } };
    report = { status: { 'usdc-exact': { ...WELL, unavailable: 'short of gas' }, 'usdc-gateway': WELL }, probes };
    expect([exact.unavailable(), gateway.unavailable(), remote.probes()]).toEqual(['short of gas', null, probes]);
    report = {
      status: { 'usdc-exact': WELL, 'usdc-gateway': { ...WELL, unavailable: 'a payment waits' } },
      probes: {},
    };
    expect([exact.unavailable(), gateway.unavailable(), remote.probes()]).toEqual([null, 'a payment waits', {}]);
    // A rail that is off there.
    report = { status: { 'usdc-exact': WELL }, probes: {} };
    expect([gateway.unavailable(), gateway.refuses(PAYER), gateway.refusesCode()]).toEqual([null, null, null]);
  });

  test('refuses the payers that it names, on the rail that it names, and no other', () => {
    const remote = newRemote();
    const payers = [[`0x${PAYER.toString('hex')}`, 'its payments burn gas']] as const;
    report = { status: { 'usdc-exact': { ...WELL, payers }, 'usdc-gateway': WELL }, probes: {} };
    const { refuses } = remote.status('usdc-exact');
    expect([refuses(PAYER), refuses(OTHER)]).toEqual(['its payments burn gas', null]);
    expect(remote.status('usdc-gateway').refuses(PAYER)).toBeNull();
    report = { status: { 'usdc-exact': WELL }, probes: {} };
    expect(refuses(PAYER)).toBeNull();
  });

  test('refuses accounts with code while it says so, and nothing else with them', () => {
    const { unavailable, refusesCode } = newRemote().status('usdc-exact');
    report = { status: { 'usdc-exact': { ...WELL, codeRefused: 'the budget is used up' } }, probes: {} };
    expect([unavailable(), refusesCode()]).toEqual([null, 'the budget is used up']);
    report = { status: { 'usdc-exact': WELL }, probes: {} };
    expect(refusesCode()).toBeNull();
  });

  test('says apart what ends the sales and what ends the sending; the previous version’s report says one for both', () => {
    const { unavailable, cannotSend } = newRemote().status('usdc-exact');
    const spent = { ...WELL, unavailable: 'the budget is used up' };
    report = { status: { 'usdc-exact': { ...spent, cannotSend: null } }, probes: {} };
    expect([unavailable(), cannotSend()]).toEqual(['the budget is used up', null]);
    report = { status: { 'usdc-exact': spent }, probes: {} };
    expect([unavailable(), cannotSend()]).toEqual(['the budget is used up', 'the budget is used up']);
    report = null;
    expect(cannotSend()).toBeNull();
  });

  test('stops sales on every rail once it is stale, whatever it says', () => {
    const remote = newRemote();
    staleReason = 'the process that settles does not answer';
    for (report of [null, { status: { 'usdc-exact': WELL }, probes: {} }]) {
      expect(remote.status('usdc-exact').unavailable()).toBe(staleReason);
      expect(remote.status('usdc-gateway').unavailable()).toBe(staleReason);
      expect(remote.status('usdc-exact').cannotSend()).toBe(staleReason);
    }
  });
});

test('a process that does not settle neither settles for others, nor reports to them, nor takes rows over', async () => {
  const { remote, asked } = handTo(settle, true);
  const id = await intent();
  await remote.takeOver(['serving']);
  expect([await remote.carry(id), remote.report(), remote.detail(), asked]).toEqual([false, null, null, []]);
  expect((await serving.get(id))?.state).toBe('settling');
});
