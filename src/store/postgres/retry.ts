import type { Clock } from '../../lib/clock.ts';
import { isConflict } from './errors.ts';

/** How long a transaction is tried anew, counted from its first attempt. Long enough for hundreds of turns, short enough for a waiting buyer. */
const GIVE_UP_MS = 5000;
const LONGEST_PAUSE_MS = 50;

/** Runs a whole transaction, and runs it again while the database undoes it because of another one's. */
export type Retry = <T>(transaction: () => Promise<T>) => Promise<T>;

/**
 * Retries what the database has told to be undone, and that alone: after a lost connection or a COMMIT without an answer nobody
 * knows what happened, so it is the caller's to hear. Pauses are random and double, so that two that met do not meet again.
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
        // The first one at once: whoever was in the way has committed.
        if (attempt > 0) await clock.sleep(Math.random() * Math.min(LONGEST_PAUSE_MS, 2 ** attempt));
      }
    }
  };
}
