import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createGasBudget } from '../../../../../src/payment/settlers/relayer/gas-budget.ts';
import type { Sqlite } from '../../../../../src/store/sqlite/database.ts';
import { createRelayerSpending } from '../../../../../src/store/sqlite/relayer-spending.ts';
import { openTestLedger } from '../../../../support/ledger/fresh-ledger.ts';
import { createManualClock } from '../../../../support/manual-clock.ts';

const NOON = Date.UTC(2026, 10, 21, 12);
const HOUR_MS = 3_600_000;
const WEI = 10n ** 18n;
const USED_UP = 'the day’s gas budget is used up';

let folder: string;
let db: Sqlite;
let errors: object[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gas-budget-'));
  db = openTestLedger(join(folder, 'ledger.db'));
  errors = [];
});
afterEach(async () => {
  await written();
  db.close();
  rmSync(folder, { recursive: true });
});

/** What was noted is on disk, or was refused: writes share a transaction at the end of the turn. */
const written = () => new Promise((next) => setImmediate(() => setImmediate(next)));

/** As a process that starts: it knows what is on disk. */
async function started(
  dailyWei: bigint | null,
  clock = createManualClock(NOON),
  dailyFailuresWei: bigint | null = null,
) {
  const log = { error: (detail: object) => void errors.push(detail) };
  const budget = createGasBudget({ store: createRelayerSpending(db), clock, dailyWei, dailyFailuresWei, log });
  await budget.load();
  const spend = (wei: bigint, failedWei = 0n) =>
    budget.note({ wei, failedWei, gasUsed: 100_000n, gasPrice: 1n, payments: 2, settled: 1 });
  return { ...budget, spend, clock };
}

test('sales stop when the day’s budget is used up, and start again at midnight UTC', async () => {
  const { refusal, spend, clock, spentWei } = await started(2n * WEI);
  expect(refusal(0n)).toBeNull();
  spend(WEI);
  expect(refusal(0n)).toBeNull();
  spend(WEI);
  expect(refusal(0n)).toBe(USED_UP);
  await clock.advance(11 * HOUR_MS);
  expect(refusal(0n)).toBe(USED_UP);
  await clock.advance(HOUR_MS);
  expect([refusal(0n), spentWei()]).toEqual([null, 0n]);
});

test('the day’s spending is reported for this day alone, also where it is the first question after midnight', async () => {
  const { spend, clock, spentWei, failedWei } = await started(null);
  spend(3n, 2n);
  await clock.advance(12 * HOUR_MS);
  expect(spentWei()).toBe(0n);
  spend(3n, 2n);
  await clock.advance(24 * HOUR_MS);
  expect(failedWei()).toBe(0n);
});

test('the first day of the epoch is a day like any other', async () => {
  const { spend, spentWei } = await started(null, createManualClock(0));
  spend(3n);
  await written();
  expect(spentWei()).toBe(3n);
  expect(await createRelayerSpending(db).spentOn('1970-01-01')).toMatchObject({ wei: 3n });
});

test('sales that are not settled yet count, because they will be settled', async () => {
  const { refusal, spend } = await started(2n * WEI);
  spend(WEI);
  expect([refusal(WEI - 1n), refusal(WEI)]).toEqual([null, USED_UP]);
});

test('today’s spending survives a restart, yesterday’s does not count', async () => {
  const first = await started(2n * WEI);
  first.spend(2n * WEI);
  await written();
  expect((await started(2n * WEI)).refusal(0n)).toBe(USED_UP);
  expect((await started(2n * WEI, createManualClock(NOON + 12 * HOUR_MS))).refusal(0n)).toBeNull();
});

test('without a budget no sale is refused, but spending is still counted', async () => {
  const { refusal, spend, spentWei } = await started(null);
  spend(10n ** 30n);
  expect([refusal(10n ** 30n), spentWei()]).toEqual([null, 10n ** 30n]);
});

test('a budget of 0 sells nothing', async () => {
  expect((await started(0n)).refusal(0n)).toBe(USED_UP);
});

test('a write that fails is logged, and this process goes on counting', async () => {
  const { refusal, spend } = await started(WEI);
  db.exec('DROP TABLE relayer_spending');
  spend(WEI);
  await written();
  expect(errors).toHaveLength(1);
  expect(refusal(0n)).toBe(USED_UP);
});

describe('the budget of failed settlements', () => {
  const CODE_REFUSED = 'the day’s budget for settlements that fail is used up';
  const failing = (clock = createManualClock(NOON), budget: bigint | null = WEI) => started(10n * WEI, clock, budget);

  test('ends sales to accounts with code when it is used up, and to no other payer, until midnight UTC', async () => {
    const { refusal, refusesCode, spend, clock, failedWei, spentWei } = await failing();
    spend(5n * WEI, WEI - 1n);
    expect([refusesCode(), failedWei()]).toEqual([null, WEI - 1n]);
    spend(1n, 1n);
    expect([refusesCode(), refusal(0n), failedWei(), spentWei()]).toEqual([CODE_REFUSED, null, WEI, 5n * WEI + 1n]);
    await clock.advance(12 * HOUR_MS - 1);
    expect(refusesCode()).toBe(CODE_REFUSED);
    await clock.advance(1);
    expect([refusesCode(), failedWei()]).toEqual([null, 0n]);
  });

  test('survives a restart on the same day', async () => {
    (await failing()).spend(WEI, WEI);
    await written();
    const again = await failing();
    expect([again.refusesCode(), again.failedWei()]).toEqual([CODE_REFUSED, WEI]);
    expect((await failing(createManualClock(NOON + 12 * HOUR_MS))).refusesCode()).toBeNull();
  });

  test('refuses no payer when it is not set, and still counts', async () => {
    const { refusesCode, spend, failedWei, dailyFailuresWei } = await failing(createManualClock(NOON), null);
    spend(10n ** 30n, 10n ** 30n);
    expect([refusesCode(), failedWei(), dailyFailuresWei]).toEqual([null, 10n ** 30n, null]);
  });
});
