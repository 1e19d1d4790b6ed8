import { AppError } from '../errors.ts';
import type { Clock } from '../lib/clock.ts';
import { inTime } from '../lib/in-time.ts';

/** In milliseconds. A busy ledger answers a read sooner. Buyers' HTTP clients time out a few seconds later. */
const TIMEOUT_MS = 4000;

/** Waits for a read of the ledger. Throws 503 `ledger_unavailable`, `charged: "unknown"`, when the read fails or takes too long. */
export type ReadSoon = <T>(asked: Promise<T>) => Promise<T>;

/**
 * Bounds each read of the ledger to TIMEOUT_MS. On a broken connection, the database's own client would notice much later. Reads only: a write whose
 * answer is late may have been made, so the caller waits for it. The error says `charged: "unknown"`. The buyer may present the payment again because
 * its first answer was lost while the money moved. After `charged: false` the buyer would pay twice.
 */
export function createReadSoon(clock: Clock): ReadSoon {
  const timedOut = () => new Error(`the ledger did not answer in ${TIMEOUT_MS} ms`);
  return async (asked) => {
    try {
      return await inTime(asked, TIMEOUT_MS, clock, timedOut);
    } catch (cause) {
      const detail = 'the ledger does not answer; present the same payment again, it is never taken twice';
      throw new AppError(503, 'ledger_unavailable', detail, { charged: 'unknown', retryAfterSeconds: 5, cause });
    }
  };
}
