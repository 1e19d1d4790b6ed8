import { isoDate } from '../../../lib/calendar.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { RelayerSpendingStore } from '../../../store/ports/spending.ts';
import type { MinedCost } from './mined-cost.ts';

/** UTC has no longer or shorter ones in Unix time. */
const DAY_MS = 86_400_000;

interface GasBudgetOptions {
  store: RelayerSpendingStore;
  clock: Clock;
  /** What may be spent on gas in a UTC day, in wei; null is any amount. */
  dailyWei: bigint | null;
  /** What transactions that settled nothing may cost in a UTC day, in wei; null is any amount. */
  dailyFailuresWei: bigint | null;
  log: { error(detail: object, message: string): void };
}

/**
 * What the relayer spends on gas, by UTC day, kept over restarts. When the day's budget is used up, sales are refused before their
 * handler runs; what was sold before is settled all the same, because it is owed. What settled nothing has a budget of its own: when that is
 * used up, sales end for accounts with code, which alone can make a settlement fail after it was tried out.
 */
export function createGasBudget({ store, clock, dailyWei, dailyFailuresWei, log }: GasBudgetOptions) {
  let day = '';
  let dayNumber = -1;
  let spentWei = 0n;
  let failedWei = 0n;

  /** The day changes while nobody looks. Asked for each call, so that a date is only written when there is a new one. */
  function today(): string {
    const nowMs = clock.nowMs();
    const number = Math.floor(nowMs / DAY_MS);
    if (number !== dayNumber) [day, dayNumber, spentWei, failedWei] = [isoDate(nowMs) ?? '', number, 0n, 0n];
    return day;
  }

  return {
    /** Reads what was spent today before this start; to be awaited before anything is sold. */
    load: async (): Promise<void> => {
      const spent = await store.spentOn(today());
      [spentWei, failedWei] = [spent.wei, spent.failedWei];
    },
    /** Counts a mined transaction; a disk that fails for a moment is said, and forgets no more than this one. */
    note: ({ wei, failedWei: failed, gasUsed, settled }: MinedCost): void => {
      const on = today();
      spentWei += wei;
      failedWei += failed;
      store
        .add(on, { wei, failedWei: failed, gas: gasUsed, transactions: 1, payments: settled })
        .catch((error) => log.error({ err: error, wei: String(wei) }, 'what a settlement cost was not written down'));
    },
    /** Of this UTC day, in wei. */
    spentWei: (): bigint => {
      today();
      return spentWei;
    },
    /** Of this UTC day, for what settled nothing, in wei. */
    failedWei: (): bigint => {
      today();
      return failedWei;
    },
    dailyWei,
    dailyFailuresWei,
    /** Why accounts with code are not sold to today, or null. */
    refusesCode: (): string | null => {
      today();
      return dailyFailuresWei !== null && failedWei >= dailyFailuresWei
        ? 'the day’s budget for settlements that fail is used up'
        : null;
    },
    /** Why nothing more is sold today, or null. `expectedWei` is what the open settlements will cost. */
    refusal: (expectedWei: bigint): string | null => {
      today();
      return dailyWei !== null && spentWei + expectedWei >= dailyWei ? 'the day’s gas budget is used up' : null;
    },
  };
}

export type GasBudget = ReturnType<typeof createGasBudget>;
