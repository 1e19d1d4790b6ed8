import type { Clock } from './clock.ts';

/** Why a timer is stopped. A reason that is given costs nothing; the one that would be made otherwise has a stack. */
const SETTLED = 'settled';

/** Settles as `asked` does, or rejects with `late` after `ms`. What then comes counts for nothing: it may be older than what was heard since. */
export async function inTime<T>(asked: Promise<T>, ms: number, clock: Clock, late: () => Error): Promise<T> {
  const timer = new AbortController();
  const over = clock.sleep(ms, timer.signal).then(() => {
    throw late();
  });
  try {
    return await Promise.race([asked, over]);
  } finally {
    timer.abort(SETTLED);
  }
}
