import type { Payment } from '../store/ports/sales.ts';
import type { Ledger } from './ledger.ts';
import type { Looks } from './looks.ts';
import type { SettlementTasks } from './settlement-tasks.ts';
import type { LookupRank, Outcome } from './settler.ts';

/** Rows that one round looks up. The next round takes the rest, so that no round is long. */
const ROUND = 100;

interface ReconciliationParts {
  ledger: Pick<Ledger, 'release' | 'unknown' | 'unfinished' | 'purge'>;
  looks: Looks;
  tasks: Pick<SettlementTasks, 'of' | 'run' | 'within'>;
  look(payment: Payment, rank: LookupRank): Promise<Outcome>;
  /** Longest wait for the task of one row before the next row, in milliseconds. */
  pauseMs: number;
}

/**
 * Each call makes one round over the open rows that no call works on. It releases reservations, and looks up and settles the rest. It stops after
 * ROUND lookups, and the next round continues there. A row that stays open is looked up again after a pause that doubles. Public nodes take few
 * requests, so a round waits up to `pauseMs` for one row before it starts the next.
 */
export function createReconciliation({ ledger, looks, tasks, look, pauseMs }: ReconciliationParts) {
  // The next round starts after this id.
  let reached = '';

  /** Works on one open row. False when that cost no lookup. */
  async function reconcileOne(payment: Payment, isServed: (payment: Payment) => boolean): Promise<boolean> {
    const { id, state } = payment;
    if (isServed(payment) || tasks.of(id)) return false;
    if (state === 'reserved') {
      await ledger.release(id);
      return false;
    }
    if (!looks.isDue(id)) return false;
    if (state === 'settling') await ledger.unknown(id);
    await tasks.within(
      pauseMs,
      tasks.run(id, () => look(payment, 'collect')),
    );
    return true;
  }

  return async (isServed: (payment: Payment) => boolean): Promise<void> => {
    let looked = 0;
    let last = '';
    for await (const payment of ledger.unfinished(reached)) {
      if (await reconcileOne(payment, isServed)) looked += 1;
      last = payment.id;
      if (looked >= ROUND) break;
    }
    // After the last row, the next round starts with the oldest.
    reached = looked >= ROUND ? last : '';
    await ledger.purge();
  };
}
