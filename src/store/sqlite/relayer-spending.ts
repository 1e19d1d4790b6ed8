import type { Sqlite } from '../../lib/sqlite-file.ts';
import { NOTHING_SPENT, type RelayerSpendingStore, type Spending } from '../ports/spending.ts';
import { groupCommitOf } from './group-commit.ts';

interface Row {
  readonly wei: string;
  readonly failedWei: string;
  readonly gas: number;
  readonly transactions: number;
  readonly payments: number;
}

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
    // The group commit's transaction has the write lock from the start, because another process may add to the same day. It also notes the
    // settlement, because each sync to disk blocks all requests.
    add: (day, spending) => commit(() => add(day, spending)),
    spentOn: async (day) => spentOn(day),
  };
}
