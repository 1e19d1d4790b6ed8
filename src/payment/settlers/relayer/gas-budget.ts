import { isoDate } from '../../../lib/calendar.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { RelayerSpendingStore } from '../../../store/ports/spending.ts';
import type { MinedCost } from './mined-cost.ts';

/** Every UTC day has this length in Unix time. */
const DAY_MS = 86_400_000;

interface GasBudgetOptions {
  store: RelayerSpendingStore;
  clock: Clock;
  /** What may be spent on gas in a UTC day, in wei; null means no limit. */
  dailyWei: bigint | null;
  /** What transactions that settled nothing may cost in a UTC day, in wei; null means no limit. */
  dailyFailuresWei: bigint | null;
  log: { error(detail: object, message: string): void };
}

/**
 * Counts what the relayer spends on gas in a UTC day, across restarts. When the day's budget is used up, sales are refused before their handler runs.
 * Calls that were sold before are still settled. Transactions that settled nothing have a budget of their own. When that is used up, accounts with
 * code can no longer buy, because a contract can pass every simulation and fail in the block without a transaction of its own. A plain account must
 * send a transaction each time.
 * Both budgets are thresholds and no caps: what was sold or sent before one is used up is still settled, and is counted when it is mined.
 */
export function createGasBudget({ store, clock, dailyWei, dailyFailuresWei, log }: GasBudgetOptions) {
  let day = '';
  let dayNumber = -1;
  let spentWei = 0n;
  let failedWei = 0n;

  /** Every member calls this first, because the day may have changed since the last call. The date is formatted only when the day is new. */
  function today(): string {
    const nowMs = clock.nowMs();
    const number = Math.floor(nowMs / DAY_MS);
    if (number !== dayNumber) [day, dayNumber, spentWei, failedWei] = [isoDate(nowMs) ?? '', number, 0n, 0n];
    return day;
  }

  return {
    /** Loads what was spent today before this start. Must be awaited before the first sale. */
    load: async (): Promise<void> => {
      const spent = await store.spentOn(today());
      [spentWei, failedWei] = [spent.wei, spent.failedWei];
    },
    /** Counts a mined transaction. A failed write is logged, and the store then misses this transaction alone. */
    note: ({ wei, failedWei: failed, gasUsed, settled }: MinedCost): void => {
      const on = today();
      spentWei += wei;
      failedWei += failed;
      store
        .add(on, { wei, failedWei: failed, gas: gasUsed, transactions: 1, payments: settled })
        .catch((error) => log.error({ err: error, wei: String(wei) }, 'the cost of a settlement was not stored'));
    },
    /** Spent in this UTC day, in wei. */
    spentWei: (): bigint => {
      today();
      return spentWei;
    },
    /** Spent in this UTC day on transactions that settled nothing, in wei. */
    failedWei: (): bigint => {
      today();
      return failedWei;
    },
    dailyWei,
    dailyFailuresWei,
    /** Why accounts with code cannot buy today, or null. */
    refusesCode: (): string | null => {
      today();
      return dailyFailuresWei !== null && failedWei >= dailyFailuresWei
        ? 'the day’s budget for settlements that fail is used up'
        : null;
    },
    /** Why nothing more is sold today, or null. `expectedWei` is the expected cost of the open settlements. */
    refusal: (expectedWei: bigint): string | null => {
      today();
      return dailyWei !== null && spentWei + expectedWei >= dailyWei ? 'the day’s gas budget is used up' : null;
    },
  };
}

export type GasBudget = ReturnType<typeof createGasBudget>;
