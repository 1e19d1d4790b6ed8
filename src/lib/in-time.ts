import type { Clock } from './clock.ts';

/** The reason for stopping the timer. Without a given reason an error with a stack would be created. */
const SETTLED = 'settled';

/** Settles as `asked` does, or rejects with `late` after `ms`. A later result is ignored, because newer results may have arrived since. */
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
