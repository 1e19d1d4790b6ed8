import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createLedger, type Ledger } from '../../../src/payment/ledger.ts';
import { createRecovery } from '../../../src/payment/settling.ts';
import type { LedgerStore } from '../../../src/store/ports/payments.ts';
import { openTestLedger, storesOf } from '../../support/ledger/fresh-ledger.ts';
import { hash32, sale, storedIntent } from '../../support/ledger/ledger-rows.ts';
import { createManualClock, type ManualClock } from '../../support/manual-clock.ts';

const PATIENCE_MS = 60_000;

let folder: string;
let store: LedgerStore;
let clock: ManualClock;
let warned: object[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'recovery-'));
  store = storesOf(openTestLedger(join(folder, 'ledger.db'))).payments;
  clock = createManualClock(1_800_000_000_000);
  warned = [];
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true });
});

function open(bootId: string): Ledger {
  const limits = { storeBytes: 1e9, keepSeconds: 900, maxDeliveries: 5, maxOpen: 0 };
  return createLedger({ store, clock, bootId, ...limits });
}
const reserve = async (bootId: string): Promise<string> => String(await open(bootId).reserve(sale(bootId), false));

/** Which of these rows are still there after this process has taken over what others left. */
async function leftAfter(
  rows: string[],
  living: (() => string[]) | undefined,
  takeOverAfterMs: number,
  dead?: string[],
) {
  const log = { warn: (detail: object) => void warned.push(detail) };
  await createRecovery({ ledger: open('this'), living, takeOverAfterMs, clock, log })(dead);
  const found = await Promise.all(rows.map((id) => store.get(id)));
  return rows.filter((_, index) => found[index] !== null);
}

test('a process that is alone on the ledger takes over all rows of dead processes at once', async () => {
  const [own, other] = [await reserve('this'), await reserve('other')];
  expect(await leftAfter([own, other], undefined, 0)).toEqual([own]);
  expect(warned).toEqual([{ released: 1, unknown: 0 }]);
  expect(await leftAfter([own], undefined, 0)).toEqual([own]);
  expect(warned).toHaveLength(1);
});

test('beside other processes, rows of dead ones are taken over at once, rows of unlisted ones after a while, rows of living ones never', async () => {
  const [alive, dead, unheard] = [await reserve('alive'), await reserve('dead'), await reserve('unheard')];
  const rows = [alive, dead, unheard];
  const living = () => ['alive'];
  expect(await leftAfter(rows, living, PATIENCE_MS)).toEqual(rows);
  expect(await leftAfter(rows, living, PATIENCE_MS, ['dead'])).toEqual([alive, unheard]);
  await clock.advance(PATIENCE_MS);
  expect(await leftAfter([alive, unheard], living, PATIENCE_MS)).toEqual([alive]);
});

test('every take-over is logged with the number of released and of unknown rows', async () => {
  const [forgotten, sent] = [await reserve('one'), await reserve('other')];
  await open('other').storeIntent(sent, storedIntent());
  await open('other').noteBroadcast([{ id: sent, transaction: hash32('transaction') }]);
  expect(await leftAfter([forgotten, sent], undefined, 0)).toEqual([sent]);
  expect(warned).toEqual([{ released: 1, unknown: 1 }]);
});
