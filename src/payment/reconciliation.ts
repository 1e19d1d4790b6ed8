import type { Payment } from '../store/ports/sales.ts';
import type { Ledger } from './ledger.ts';
import type { Looks } from './looks.ts';
import type { SettlementTasks } from './settlement-tasks.ts';
import type { LookupRank, Outcome } from './settler.ts';

/** Rows that one round looks at: what is left comes in the next one, so that no round is long. */
const ROUND = 100;

interface ReconciliationParts {
  ledger: Pick<Ledger, 'release' | 'unknown' | 'unfinished' | 'purge'>;
  looks: Looks;
  tasks: Pick<SettlementTasks, 'of' | 'run' | 'within'>;
  look(payment: Payment, rank: LookupRank): Promise<Outcome>;
  /** How long a row's look is waited for before the next row's, in milliseconds. */
  pauseMs: number;
}

/**
 * Makes one round over what has not ended and no call works on, some of it where there is much: a reservation is given back, the rest is looked
 * up and settled. A row without an end is looked at again after a pause that doubles. Each row's look is waited for before the next,
 * because public nodes take few requests; its settlement is not.
 */
export function createReconciliation({ ledger, looks, tasks, look, pauseMs }: ReconciliationParts) {
  // Where the next round goes on.
  let reached = '';

  /** Looks at one open row; false where that costs nothing now. */
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
    // At the end the next round begins anew.
    reached = looked >= ROUND ? last : '';
    await ledger.purge();
  };
}
