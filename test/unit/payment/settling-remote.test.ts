import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/lib/clock.ts';
import { createLedger, type Ledger } from '../../../src/payment/ledger.ts';
import { createHandover, type SettlingProcess } from '../../../src/payment/settling-remote.ts';
import type { LedgerStore } from '../../../src/store/ports/sales.ts';
import { openLedgerDatabase } from '../../../src/store/sqlite/database.ts';
import { createLedgerStore } from '../../../src/store/sqlite/ledger-store.ts';
import { sale, storedIntent } from '../../support/ledger/ledger-rows.ts';

const WAIT_MS = 600;

let folder: string;
let stores: LedgerStore[];
let serving: Ledger;
let settling: Ledger;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'percall-handover-'));
  stores = [];
  serving = open('serving');
  settling = open('settling');
});
afterEach(async () => {
  for (const store of stores) await store.close();
  rmSync(folder, { recursive: true, force: true });
});

function open(bootId: string): Ledger {
  const store = createLedgerStore(openLedgerDatabase(join(folder, 'ledger.db')));
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

/** The hand-over to a process that does this with each row it is asked for, and tells of it or not. */
function handTo(work: (id: string) => Promise<unknown>, tells: boolean, waitMs = WAIT_MS) {
  let tell = (_id: string) => {};
  const asked: string[] = [];
  const left: [string, string | null][] = [];
  const process: SettlingProcess = {
    ask: (id) => {
      asked.push(id);
      void work(id).then(() => tells && tell(id));
    },
    onEnded: (listener) => {
      tell = listener;
    },
    unavailable: () => null,
    refuses: () => null,
    refusesCode: () => null,
    gatewayUnavailable: () => null,
    rails: () => ({}),
  };
  const onLeft = (id: string, state: string | null) => void left.push([id, state]);
  const handover = createHandover({ ledger: serving, settling: process, clock: systemClock, waitMs, onLeft });
  return { handover, asked, left };
}

const settle = (id: string) => settling.settled(id, randomBytes(32), 7, 500n);

describe('an intent that is handed over', () => {
  test.each([
    ['is told of', true],
    ['is not told of, and found in the ledger', false],
  ])('ends as the other process wrote it, when the end %s', async (_how, tells) => {
    const { handover, asked, left } = handTo(settle, tells);
    const id = await intent();
    expect(await handover.settle({ id })).toMatchObject({ id, state: 'settled', block: 7 });
    expect([asked, left]).toEqual([[id], [[id, 'settled']]]);
  });

  test('that failed is told as failed', async () => {
    const { handover } = handTo((id) => settling.failed(id, 'expired'), true);
    expect(await handover.settle({ id: await intent() })).toMatchObject({ state: 'failed', reason: 'expired' });
  });

  test('is unknown when nobody brings it to an end in time, and may still end later', async () => {
    const { handover, left } = handTo(async () => {}, false);
    const id = await intent();
    expect(await handover.settle({ id })).toMatchObject({ id, state: 'unknown' });
    expect(left).toEqual([[id, 'unknown']]);
    expect(await settle(id)).toBe(true);
  });

  test('is unknown at once when the other process says that it cannot end it now', async () => {
    // Longer than a test may take.
    const { handover } = handTo(async () => {}, true, 600_000);
    expect(await handover.settle({ id: await intent() })).toMatchObject({ state: 'unknown' });
  });

  test('wakes everybody who waits for it', async () => {
    const { handover } = handTo(settle, true);
    const id = await intent();
    await serving.unknown(id);
    const row = await serving.get(id);
    const ends = await Promise.all([handover.resume(row!), handover.resume(row!)]);
    expect(ends.map((end) => end?.state)).toEqual(['settled', 'settled']);
  });

  test('that was taken back meanwhile is gone, and nothing is written', async () => {
    const { handover } = handTo(() => settling.recover(), true);
    expect(await handover.settle({ id: await intent() })).toBeNull();
  });
});

test('what no call works on is given up: a reservation is given back, an intent left to the other, others’ rows alone', async () => {
  const { handover } = handTo(async () => {}, false);
  const [served, stored] = [await intent(), await intent()];
  const reserved = String(await serving.reserve(sale('reserved'), false));
  await handover.tidy(({ id }) => id === served);
  expect((await serving.get(served))?.state).toBe('settling');
  expect((await serving.get(stored))?.state).toBe('unknown');
  expect(await serving.get(reserved)).toBeNull();
});
