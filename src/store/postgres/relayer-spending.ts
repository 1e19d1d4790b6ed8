import { NOTHING_SPENT, type RelayerSpendingStore, type Spending } from '../ports/spending.ts';
import type { Pools } from './pool.ts';
import { statement } from './statement.ts';
import type { WriteQueue } from './write-queue.ts';

const ADD = statement<Spending & { day: string }>(`
  INSERT INTO relayer_spending (day, wei, failed_wei, gas, transactions, payments)
  VALUES (@day, @wei, @failedWei, @gas, @transactions, @payments)
  ON CONFLICT (day) DO UPDATE
     SET wei = relayer_spending.wei + excluded.wei, failed_wei = relayer_spending.failed_wei + excluded.failed_wei,
         gas = relayer_spending.gas + excluded.gas,
         transactions = relayer_spending.transactions + excluded.transactions,
         payments = relayer_spending.payments + excluded.payments`);
const READ = statement<{ day: string }>(
  'SELECT wei, failed_wei AS "failedWei", gas, transactions, payments FROM relayer_spending WHERE day = @day',
);

/** The relayer's spending on PostgreSQL: the database adds up the amounts of all instances. */
export function createRelayerSpending({ read }: Pools, queue: WriteQueue): RelayerSpendingStore {
  return {
    add: (day, spending) => queue.write({ statements: [ADD({ ...spending, day })], read: () => {} }),
    spentOn: async (day) => (await read<Spending>(READ({ day })))[0] ?? NOTHING_SPENT,
  };
}
