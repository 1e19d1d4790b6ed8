import type { Clock } from '../lib/clock.ts';
import type { Ledger } from './ledger.ts';
import type { Looks } from './looks.ts';
import type { Outcome } from './settler.ts';

export interface TasksOptions {
  ledger: Pick<Ledger, 'settled' | 'failed'>;
  looks: Looks;
  clock: Clock;
  /** The fencing token of this process's lease, where several processes may settle. */
  fencingToken?: number | undefined;
  log: { info(detail: object, message: string): void; error(detail: object, message: string): void };
}

/** The reason for stopping a timer. A constant costs nothing. The default reason is an error with a stack trace. */
const ENDED = 'ended';

/**
 * Runs one task per sale, from the first look at the evidence to the written end. A second caller waits for the same task. So a late answer cannot
 * restart an ended sale.
 */
export function createTasks({ ledger, looks, clock, fencingToken, log }: TasksOptions) {
  const running = new Map<string, Promise<void>>();

  async function record(id: string, outcome: Outcome): Promise<void> {
    looks.note(id, outcome.kind !== 'unknown');
    if (outcome.kind === 'settled') await ledger.settled(id, outcome.transaction, outcome.block, outcome.paid);
    else if (outcome.kind === 'failed') await ledger.failed(id, outcome.reason, fencingToken);
    log.info(
      { payment: id, outcome: outcome.kind, ...('reason' in outcome && { reason: outcome.reason }) },
      'settlement',
    );
  }

  return {
    /** The sale's task while it runs. */
    of: (id: string): Promise<void> | undefined => running.get(id),
    run: (id: string, work: () => Promise<Outcome>): Promise<void> => {
      const known = running.get(id);
      if (known) return known;
      const started = work()
        .then((outcome) => record(id, outcome))
        // The row stays open, and the next reconciliation finds it.
        .catch((error) => log.error({ err: error, payment: id }, 'a settlement task failed'))
        .finally(() => running.delete(id));
      running.set(id, started);
      return started;
    },
    /** Waits for a task, for `ms` milliseconds at the most. */
    within: async (ms: number, started: Promise<void>): Promise<void> => {
      const timer = new AbortController();
      await Promise.race([started, clock.sleep(ms, timer.signal).catch(() => {})]);
      timer.abort(ENDED);
    },
    idle: () => Promise.all(running.values()),
  };
}

export type SettlementTasks = ReturnType<typeof createTasks>;
