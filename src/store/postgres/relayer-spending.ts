import type { RelayerSpendingStore, Spending } from '../relayer-spending.ts';
import type { Pools } from './pool.ts';
import { statement } from './statement.ts';
import type { WriteLane } from './write-lane.ts';

const ADD = statement<Spending & { day: string }>(`
  INSERT INTO relayer_spending (day, wei, gas, transactions, payments) VALUES (@day, @wei, @gas, @transactions, @payments)
  ON CONFLICT (day) DO UPDATE
     SET wei = relayer_spending.wei + excluded.wei, gas = relayer_spending.gas + excluded.gas,
         transactions = relayer_spending.transactions + excluded.transactions,
         payments = relayer_spending.payments + excluded.payments`);
const READ = statement<{ day: string }>(
  'SELECT wei, gas, transactions, payments FROM relayer_spending WHERE day = @day',
);

/** The relayer's spending on PostgreSQL: added up by the database, whichever instance adds. */
export function createRelayerSpending({ read }: Pools, lane: WriteLane): RelayerSpendingStore {
  return {
    add: (day, spending) => lane.write({ statements: [ADD({ ...spending, day })], read: () => {} }),
    spentOn: async (day) =>
      (await read<Spending>(READ({ day })))[0] ?? { wei: 0n, gas: 0n, transactions: 0, payments: 0 },
  };
}
