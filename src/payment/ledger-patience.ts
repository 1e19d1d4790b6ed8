import { AppError } from '../errors.ts';
import type { Clock } from '../lib/clock.ts';
import { inTime } from '../lib/in-time.ts';

/** Longer than a ledger that is only busy takes to be read; buyers' clients give up a few seconds later. */
const PATIENCE_MS = 4000;

/** What became of a payment, as the ledger has it; throws 503 `ledger_unavailable`, `charged: "unknown"`, where it does not say. */
export type ReadSoon = <T>(asked: Promise<T>) => Promise<T>;

/**
 * Ends the wait for a ledger that does not answer at all, as behind a wire that has gone deaf, long before its own client finds that out. For
 * reads alone, of which giving up loses nothing: a write whose answer is late may have been made, and is waited for. Whoever presents a payment
 * may do so because its first answer was lost, with the money on its way: while nobody can tell, "not charged" would have him pay again.
 */
export function createReadSoon(clock: Clock): ReadSoon {
  const silence = () => new Error(`the ledger did not answer in ${PATIENCE_MS} ms`);
  return async (asked) => {
    try {
      return await inTime(asked, PATIENCE_MS, clock, silence);
    } catch (cause) {
      const detail = 'the ledger does not answer; present the same payment again, it is never taken twice';
      throw new AppError(503, 'ledger_unavailable', detail, { charged: 'unknown', retryAfterSeconds: 5, cause });
    }
  };
}
