import type { Payment } from '../store/ports/sales.ts';
import { createRounds } from './rounds.ts';
import type { MaintainedSettling } from './settling.ts';

interface MaintenanceOptions {
  settling: Pick<MaintainedSettling, 'start' | 'refresh' | 'reconcile' | 'stop'>;
  /** Whether another process stored the row, or a call of this one works on it. */
  isInUse(payment: Payment): boolean;
  /** Between two rounds. */
  intervalMs: number;
  log: { warn(detail: object, message: string): void };
}

/** Starts the settlement, keeps it going by rounds of maintenance, and ends it. */
export function createMaintenance({ settling, isInUse, intervalMs, log }: MaintenanceOptions) {
  let timer: NodeJS.Timeout | undefined;
  // Each by itself: a long reconciliation must not keep the relayer's balance from being watched.
  const refreshing = createRounds(() => settling.refresh(), log);
  const reconciling = createRounds(() => settling.reconcile(isInUse), log);
  const round = (): void => {
    void refreshing();
    void reconciling();
  };

  return {
    /** Returns when the first call may be sold. Rejects when the ledger cannot be read. */
    start: async (): Promise<void> => {
      await settling.start(round);
      // Not waited for: a chain that is slow must not keep the free routes from being served.
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
