import { AppError, UpstreamFailed } from '../errors.ts';
import type { Clock } from '../lib/clock.ts';
import { inTime } from '../lib/tasks.ts';

/** How long the chain is waited for when collected data can take its place: far below the time that a handler has, so that the answer still comes. */
const LIVE_MS = 3000;

/**
 * What `live` reads from the chain. When the chain fails, is busy or gives no answer within 3 s, `collected` takes its place.
 * `collected` is null when the collector has nothing that may be sold for it; then the chain's own failure is thrown.
 */
export async function liveOrCollected<T>(live: () => Promise<T>, collected: T | null, clock: Clock): Promise<T> {
  if (collected === null) return live();
  const late = () => new UpstreamFailed('chain', 'no answer in time');
  return inTime(live(), LIVE_MS, clock, late).catch((error: unknown) => {
    if (error instanceof AppError && error.status >= 500) return collected;
    throw error;
  });
}
