import { afterAll, beforeAll, vi } from 'vitest';

/** In milliseconds: what a pause of the process costs, however long it is. */
const STEP_MS = 50;

/**
 * Makes the time-outs of a file's tests count the time in which the process runs. After a pause of it, peers that answer are still in time.
 * Returns a clock of that time, in ms.
 */
export function countRunningTime(): () => number {
  let runningMs = 0;
  let steps: NodeJS.Timeout;
  beforeAll(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'], shouldAdvanceTime: true, advanceTimeDelta: STEP_MS });
    steps = setInterval(() => {
      runningMs += STEP_MS;
    }, STEP_MS);
  });
  afterAll(() => {
    clearInterval(steps);
    vi.useRealTimers();
  });
  return () => runningMs;
}
