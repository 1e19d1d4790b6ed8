import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Sqlite } from '../../../../../src/lib/sqlite-file.ts';
import { createGasBudget } from '../../../../../src/payment/relayer/gas.ts';
import { openTestLedger, storesOf } from '../../../../support/ledger/fresh-ledger.ts';
import { createManualClock } from '../../../../support/manual-clock.ts';
import { quiet } from '../../../../support/quiet.ts';

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

const log = { ...quiet, error: (detail: object) => void errors.push(detail) };

/** As a process that starts: it knows what is on disk. */
async function started(
  dailyWei: bigint | null,
  clock = createManualClock(NOON),
  dailyFailuresWei: bigint | null = null,
) {
  const dailyGas = dailyWei === null ? null : { wei: dailyWei, plusIncome: false };
  const incomeToday = () => Promise.reject(new Error('a fixed budget asks for no income'));
  const budget = createGasBudget({ clock, log }, storesOf(db).spending, { dailyGas, dailyFailuresWei }, incomeToday);
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
  expect(await storesOf(db).spending.spentOn('1970-01-01')).toMatchObject({ wei: 3n });
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

describe('a budget that the day’s income adds to', () => {
  const UNIT = 1_000_000n;

  /** Its own 2 USDC, and what `income` holds, which is read again at each refresh. */
  async function growing(clock = createManualClock(NOON)) {
    const income = { units: 0n, reads: 0, isAway: false };
    const dailyGas = { wei: 2n * WEI, plusIncome: true };
    const budget = createGasBudget(
      { clock, log },
      storesOf(db).spending,
      { dailyGas, dailyFailuresWei: null },
      async () => {
        income.reads += 1;
        if (income.isAway) throw new Error('the ledger is away');
        return income.units;
      },
    );
    await budget.load();
    const spend = (wei: bigint) =>
      budget.note({ wei, failedWei: 0n, gasUsed: 100_000n, gasPrice: 1n, payments: 1, settled: 1 });
    return { ...budget, spend, income, clock };
  }

  test('sells on as long as the day’s gas costs less than both together', async () => {
    const { refusal, refresh, spend, income, dailyWei } = await growing();
    spend(2n * WEI);
    expect([refusal(0n), dailyWei()]).toEqual([USED_UP, 2n * WEI]);
    income.units = (3n * UNIT) / 2n;
    await refresh(0n);
    expect([refusal(0n), dailyWei()]).toEqual([null, (7n * WEI) / 2n]);
    spend((3n * WEI) / 2n);
    await refresh(0n);
    expect(refusal(0n)).toBe(USED_UP);
  });

  test('reads the income once half of what may be spent is spent, or will be by what is open', async () => {
    const { refresh, spend, income } = await growing();
    spend(WEI - 1n);
    await refresh(0n);
    expect(income.reads).toBe(0);
    income.units = 2n * UNIT;
    await refresh(1n);
    expect(income.reads).toBe(1);
    spend(1n);
    await refresh(0n);
    expect(income.reads).toBe(1);
    spend(WEI);
    await refresh(0n);
    expect(income.reads).toBe(2);
  });

  test('knows the income after a restart, and begins at midnight UTC without it', async () => {
    (await growing()).spend(2n * WEI);
    await written();
    const clock = createManualClock(NOON);
    const again = await growing(clock);
    again.income.units = UNIT;
    await again.load();
    expect([again.refusal(0n), again.dailyWei()]).toEqual([null, 3n * WEI]);
    await clock.advance(12 * HOUR_MS);
    expect([again.refusal(2n * WEI - 1n), again.refusal(2n * WEI)]).toEqual([null, USED_UP]);
  });

  test('keeps what it has read where the ledger does not answer', async () => {
    const { refusal, refresh, spend, income } = await growing();
    income.units = 5n * UNIT;
    spend(3n * WEI);
    await refresh(0n);
    spend(WEI);
    income.isAway = true;
    await expect(refresh(0n)).rejects.toThrow('away');
    expect([refusal(0n), refusal(3n * WEI)]).toEqual([null, USED_UP]);
  });
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
