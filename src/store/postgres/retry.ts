import type { Clock } from '../../lib/clock.ts';
import { isConflict } from './errors.ts';

/** How long a transaction is retried, counted from its first attempt. Long enough for hundreds of queue's turns, short enough for a waiting buyer. */
const GIVE_UP_MS = 5000;
const LONGEST_PAUSE_MS = 50;

/** Runs a whole transaction, and runs it again while the database aborts it because of another one. */
export type Retry = <T>(transaction: () => Promise<T>) => Promise<T>;

/**
 * Retries only transactions that the database reported as aborted. After a lost connection, or a COMMIT without an answer, the outcome is unknown,
 * so the error goes to the caller. Pauses are random and double each time, so that two conflicting transactions do not conflict again.
 */
export function createRetry(clock: Clock, onRetry: () => void = () => {}): Retry {
  return async (transaction) => {
    const giveUpAt = clock.nowMs() + GIVE_UP_MS;
    for (let attempt = 0; ; attempt++) {
      try {
        return await transaction();
      } catch (error) {
        if (!isConflict(error) || clock.nowMs() >= giveUpAt) throw error;
        onRetry();
        // The first retry has no pause, because the conflicting transaction has committed.
        if (attempt > 0) await clock.sleep(Math.random() * Math.min(LONGEST_PAUSE_MS, 2 ** attempt));
      }
    }
  };
}
