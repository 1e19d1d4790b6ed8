import type { Sqlite } from './database.ts';
import { groupCommitOf } from './group-commit.ts';

/** What one transaction of the relayer's, or all of a day, cost and settled. */
export interface Spending {
  readonly wei: bigint;
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
  readonly gas: number;
  readonly transactions: number;
  readonly payments: number;
}

const NOTHING: Spending = { wei: 0n, gas: 0n, transactions: 0, payments: 0 };

/** The relayer's spending on the ledger's database. */
export function createRelayerSpending(db: Sqlite): RelayerSpendingStore {
  const read = db.prepare<[string], Row>('SELECT wei, gas, transactions, payments FROM relayer_spending WHERE day = ?');
  const write = db.prepare(
    `INSERT OR REPLACE INTO relayer_spending (day, wei, gas, transactions, payments)
     VALUES (@day, @wei, @gas, @transactions, @payments)`,
  );

  function spentOn(day: string): Spending {
    const row = read.get(day);
    return row ? { ...row, wei: BigInt(row.wei), gas: BigInt(row.gas) } : NOTHING;
  }

  function add(day: string, more: Spending): void {
    const before = spentOn(day);
    write.run({
      day,
      wei: String(before.wei + more.wei),
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
