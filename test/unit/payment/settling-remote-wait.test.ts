import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createLedger, type Ledger } from '../../../src/payment/ledger.ts';
import type { LeaderLink } from '../../../src/payment/settling.ts';
import { createRemoteSettling } from '../../../src/payment/settling-remote.ts';
import type { LedgerStore, Payment } from '../../../src/store/ports/payments.ts';
import { openTestLedger, storesOf } from '../../support/ledger/fresh-ledger.ts';
import { hash32, sale, storedIntent } from '../../support/ledger/ledger-rows.ts';
import { createManualClock, type ManualClock } from '../../support/manual-clock.ts';

// How a process waits for a row that another process settles, by a clock that the test moves.

const START_MS = 1_800_000_000_000;
const WAIT_MS = 600;

let folder: string;
let store: LedgerStore;
let ledger: Ledger;
let clock: ManualClock;
/** Tells of a row's end, as the other process does. */
let tell: (id: string) => void;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'settling-remote-'));
  store = storesOf(openTestLedger(join(folder, 'ledger.db'))).payments;
  clock = createManualClock(START_MS);
  ledger = open();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await store.close();
  rmSync(folder, { recursive: true });
});

const open = (): Ledger =>
  createLedger({ store, clock, bootId: 'serving', storeBytes: 5, keepSeconds: 900, maxDeliveries: 5, maxOpen: 0 });

/** A process that serves, and reads its rows at `reads`, in milliseconds since the start. */
function newRemote(change: Partial<Ledger> = {}) {
  const reads: number[] = [];
  const warned: object[] = [];
  const leader: LeaderLink = {
    ask: () => {},
    onEnded: (listener) => {
      tell = listener;
    },
    report: () => null,
    staleReason: () => null,
  };
  const watched: Ledger = {
    ...ledger,
    get: (id) => {
      reads.push(clock.nowMs() - START_MS);
      return ledger.get(id);
    },
    ...change,
  };
  const log = { warn: (detail: object) => void warned.push(detail) };
  return { remote: createRemoteSettling({ ledger: watched, leader, clock, waitMs: WAIT_MS, log }), reads, warned };
}

async function stored(state: 'settling' | 'unknown'): Promise<Payment> {
  const id = String(await ledger.reserve(sale('a'), false));
  await ledger.storeIntent(id, storedIntent());
  if (state === 'unknown') await ledger.unknown(id);
  return (await ledger.get(id)) as Payment;
}
const settle = ({ id }: Payment) => ledger.settled(id, hash32('transaction'), 7, 500n);
/** The disk has its turns before and after the clock moves on. */
async function pass(ms: number): Promise<void> {
  for (const step of [0, ms, 0]) {
    for (let turn = 0; turn < 20; turn++) await new Promise((next) => setImmediate(next));
    await clock.advance(step);
  }
}

describe('a row that another process settles', () => {
  test('is read four times a second until SETTLE_WAIT_MS is over, and then its outcome is unknown', async () => {
    const { remote, reads } = newRemote();
    const got = remote.resume(await stored('settling'));
    for (let at = 0; at < 12; at++) await pass(50);
    expect(await got).toMatchObject({ state: 'unknown' });
    // The last one is the report after it was written down as unknown.
    expect(reads).toEqual([250, 500, 600, 600]);
    expect(clock.pendingSleeps()).toEqual([]);
  });

  test.each(['settling', 'unknown'] as const)(
    'and that was %s is waited for until it has ended, although no notification came',
    async (state) => {
      const { remote, reads } = newRemote();
      const row = await stored(state);
      const got = remote.resume(row);
      await pass(300);
      await settle(row);
      await pass(200);
      expect([reads, await got]).toMatchObject([[250, 500], { state: 'settled' }]);
    },
  );

  test('wakes each waiting call when its end is reported, also after another call has stopped waiting', async () => {
    const { remote } = newRemote();
    const row = await stored('unknown');
    const first = remote.resume(row);
    await pass(300);
    const second = remote.resume(row);
    await pass(300);
    expect(await first).toMatchObject({ state: 'unknown' });
    await settle(row);
    tell(row.id);
    // No time passes.
    expect(await second).toMatchObject({ state: 'settled' });
  });

  test('keeps nothing of a call that has its answer', async () => {
    const { remote } = newRemote();
    const row = await stored('settling');
    await settle(row);
    const got = remote.resume(row);
    await pass(250);
    await got;
    const abort = vi.spyOn(AbortController.prototype, 'abort');
    tell(row.id);
    tell('a row that no call ever waited for');
    expect(abort).not.toHaveBeenCalled();
  });
});

describe('a process that serves', () => {
  test('counts the kept replies before it sells, because they use the same reply store', async () => {
    await settle(await stored('settling'));
    ledger = open();
    expect(ledger.hasRoom()).toBe(true);
    await newRemote().remote.start(() => {});
    expect(ledger.hasRoom()).toBe(false);
  });

  test('starts also while they cannot be counted, and says so', async () => {
    const error = new Error('the disk is away');
    const { remote, warned } = newRemote({ purge: () => Promise.reject(error) });
    await remote.start(() => {});
    expect(warned).toEqual([{ err: error }]);
  });
});
