import { createRounds } from '../lib/rounds.ts';
import type { Payment } from '../store/ports/sales.ts';
import type { MaintainedSettling } from './settling.ts';

interface MaintenanceOptions {
  settling: Pick<MaintainedSettling, 'start' | 'refresh' | 'reconcile' | 'stop'>;
  /** Whether another process stored the row, or a call of this one works on it. */
  isInUse(payment: Payment): boolean;
  /** Milliseconds between two rounds. */
  intervalMs: number;
  log: { info(detail: object, message: string): void; warn(detail: object, message: string): void };
}

/** Starts settlement, runs its maintenance on a timer, and stops it. */
export function createMaintenance({ settling, isInUse, intervalMs, log }: MaintenanceOptions) {
  let timer: NodeJS.Timeout | undefined;
  // Two separate rounds, so that a long reconciliation does not delay the check of the relayer's balance.
  const refreshing = createRounds(() => settling.refresh(), log);
  const reconciling = createRounds(() => settling.reconcile(isInUse), log);
  const round = (): void => {
    void refreshing();
    void reconciling();
  };

  return {
    /** The kinds of rounds whose last one has failed. */
    failing: () => ({ refresh: refreshing.isFailing(), reconcile: reconciling.isFailing() }),
    /** Resolves when the first call may be sold. Rejects when the ledger cannot be read. */
    start: async (): Promise<void> => {
      await settling.start(round);
      // Not awaited, so that a slow chain does not delay the free routes.
      round();
      timer = setInterval(round, intervalMs);
    },
    stop: async (): Promise<void> => {
      clearInterval(timer);
      await settling.stop();
      await Promise.all([refreshing.idle(), reconciling.idle()]);
    },
  };
}
