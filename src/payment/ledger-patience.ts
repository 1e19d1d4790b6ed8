import { Unavailable } from '../errors.ts';
import type { Clock } from '../lib/clock.ts';
import { inTime } from '../lib/in-time.ts';

/** Longer than a ledger that is only busy takes to be read; buyers' clients give up a few seconds later. */
const PATIENCE_MS = 4000;

/** Waits for a read of the ledger, or throws 503 `ledger_unavailable`. */
export type ReadSoon = <T>(asked: Promise<T>) => Promise<T>;

/**
 * Ends the wait for a ledger that does not answer at all, as behind a wire that has gone deaf, long before its own client finds that out. For
 * reads alone, of which giving up loses nothing: a write whose answer is late may have been made, and is waited for.
 */
export function createReadSoon(clock: Clock): ReadSoon {
  const detail = 'the ledger does not answer, and nothing is sold without it; try again later';
  return (asked) => inTime(asked, PATIENCE_MS, clock, () => new Unavailable('ledger_unavailable', detail));
}
