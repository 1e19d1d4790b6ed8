import type { DailyGas } from '../../../config/relayer.ts';
import { isoDate } from '../../../lib/calendar.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { RelayerSpendingStore } from '../../../store/ports/spending.ts';
import type { MinedCost } from './mined-cost.ts';

/** Every UTC day has this length in Unix time. */
const DAY_MS = 86_400_000;
/** The token counts in millionths of a USDC, the chain's gas in units of 18 decimals. */
const WEI_PER_UNIT = 10n ** 12n;

interface GasBudgetOptions {
  store: RelayerSpendingStore;
  clock: Clock;
  /** What may be spent on gas in a UTC day; null means no limit. */
  daily: DailyGas | null;
  /** Reads what the payments over the relayer brought in this UTC day, in USDC base units. */
  incomeToday: () => Promise<bigint>;
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
export function createGasBudget({ store, clock, dailyFailuresWei, log, ...terms }: GasBudgetOptions) {
  let spent = { day: '', number: -1, wei: 0n, failedWei: 0n };

  /** What this UTC day has cost. Every member asks it, because the day may be new. The date is formatted only then. */
  function today() {
    const nowMs = clock.nowMs();
    const number = Math.floor(nowMs / DAY_MS);
    if (number !== spent.number) spent = { day: isoDate(nowMs) ?? '', number, wei: 0n, failedWei: 0n };
    return spent;
  }

  const allowance = createAllowance(terms, () => today().day);

  return {
    /** Loads what was spent today before this start. Must be awaited before the first sale. */
    load: async (): Promise<void> => {
      const on = today();
      const { wei, failedWei } = await store.spentOn(on.day);
      [on.wei, on.failedWei] = [wei, failedWei];
      await allowance.refresh(wei);
    },
    /** Reads the day's income where it matters by now. Rejects when it cannot be read; what was read before stays. */
    refresh: (expectedWei: bigint): Promise<void> => allowance.refresh(today().wei + expectedWei),
    /** Counts a mined transaction. A failed write is logged, and the store then misses this transaction alone. */
    note: ({ wei, failedWei, gasUsed, settled }: MinedCost): void => {
      const on = today();
      on.wei += wei;
      on.failedWei += failedWei;
      store
        .add(on.day, { wei, failedWei, gas: gasUsed, transactions: 1, payments: settled })
        .catch((error) => log.error({ err: error, wei: String(wei) }, 'the cost of a settlement was not stored'));
    },
    /** Spent in this UTC day, in wei. */
    spentWei: (): bigint => today().wei,
    /** Spent in this UTC day on transactions that settled nothing, in wei. */
    failedWei: (): bigint => today().failedWei,
    /** What may be spent in this UTC day, in wei, by the income that was read last. Null means no limit. */
    dailyWei: allowance.wei,
    dailyFailuresWei,
    /** Why accounts with code cannot buy today, or null. */
    refusesCode: (): string | null =>
      dailyFailuresWei !== null && today().failedWei >= dailyFailuresWei
        ? 'the day’s budget for settlements that fail is used up'
        : null,
    /** Why nothing more is sold today, or null. `expectedWei` is the expected cost of the open settlements. */
    refusal: (expectedWei: bigint): string | null => {
      const dailyWei = allowance.wei();
      return dailyWei !== null && today().wei + expectedWei >= dailyWei ? 'the day’s gas budget is used up' : null;
    },
  };
}

/**
 * What the day's gas may cost. The income is read from the ledger, because other processes earn it too. It is read only
 * once half of what may be spent is spent: a relayer that earns its gas then reads it a few times a day.
 */
function createAllowance({ daily, incomeToday }: Pick<GasBudgetOptions, 'daily' | 'incomeToday'>, today: () => string) {
  let income = { day: '', wei: 0n };

  function wei(): bigint | null {
    if (daily === null) return null;
    return daily.wei + (income.day === today() ? income.wei : 0n);
  }

  return {
    wei,
    refresh: async (spentWei: bigint): Promise<void> => {
      if (!daily?.plusIncome || 2n * spentWei < (wei() ?? 0n)) return;
      const day = today();
      income = { day, wei: (await incomeToday()) * WEI_PER_UNIT };
    },
  };
}

export type GasBudget = ReturnType<typeof createGasBudget>;
