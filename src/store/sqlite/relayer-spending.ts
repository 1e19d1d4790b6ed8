import type { Sqlite } from './database.ts';
import { groupCommitOf } from './group-commit.ts';

/** What one transaction of the relayer's, or all of a day, cost and settled. */
export interface Spending {
  readonly wei: bigint;
  /** The part of it that settled nothing. */
  readonly failedWei: bigint;
  readonly gas: bigint;
  readonly transactions: number;
  readonly payments: number;
}

/** The relayer's spending by UTC day (`YYYY-MM-DD`); what `add` resolves with is on disk. */
export interface RelayerSpendingStore {
  add(day: string, spending: Spending): Promise<void>;
  /** Zeros for a day on which nothing was spent. */
  spentOn(day: string): Promise<Spending>;
}

interface Row {
  readonly wei: string;
  readonly failedWei: string;
  readonly gas: number;
  readonly transactions: number;
  readonly payments: number;
}

/** Of a day on which nothing was sent. */
export const NOTHING_SPENT: Spending = { wei: 0n, failedWei: 0n, gas: 0n, transactions: 0, payments: 0 };

/** The relayer's spending on the ledger's database. */
export function createRelayerSpending(db: Sqlite): RelayerSpendingStore {
  const read = db.prepare<[string], Row>(
    'SELECT wei, failed_wei AS failedWei, gas, transactions, payments FROM relayer_spending WHERE day = ?',
  );
  const write = db.prepare(
    `INSERT OR REPLACE INTO relayer_spending (day, wei, failed_wei, gas, transactions, payments)
     VALUES (@day, @wei, @failedWei, @gas, @transactions, @payments)`,
  );

  function spentOn(day: string): Spending {
    const row = read.get(day);
    if (!row) return NOTHING_SPENT;
    return { ...row, wei: BigInt(row.wei), failedWei: BigInt(row.failedWei), gas: BigInt(row.gas) };
  }

  function add(day: string, more: Spending): void {
    const before = spentOn(day);
    write.run({
      day,
      wei: String(before.wei + more.wei),
      failedWei: String(before.failedWei + more.failedWei),
      gas: before.gas + more.gas,
      transactions: before.transactions + more.transactions,
      payments: before.payments + more.payments,
    });
  }

  const commit = groupCommitOf(db);
  return {
    // In a transaction that has the write lock from the start, because another process may add to the same day; and in the one that
    // notes what was settled, because each sync to disk holds up everybody.
    add: (day, spending) => commit(() => add(day, spending)),
    spentOn: async (day) => spentOn(day),
  };
}
