import type { Clock } from '../lib/clock.ts';

interface ScheduleOptions {
  /** Must not reject. Must return soon after the signal aborts. */
  readonly task: (signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  /** Time from the start to the first run. */
  readonly firstMs: number;
  /** Mean time between the beginnings of two runs. */
  readonly intervalMs: number;
  /** A random number from 0 to 1. */
  readonly random: () => number;
}

/** The greatest difference between an interval and the configured one, in both directions. */
const JITTER = 0.05;

/**
 * Runs a task shortly after the start and then at every interval, one run at a time. When a run takes longer than the interval, the next follows at
 * once.
 * Intervals vary by 5 %, so that runs do not stay on the full hour, when most timers fire.
 */
export function createSchedule({ task, clock, firstMs, intervalMs, random }: ScheduleOptions) {
  const ended = new AbortController();
  let running: Promise<void> | null = null;
  const sleep = (ms: number) => clock.sleep(Math.max(ms, 0), ended.signal).catch(() => undefined);

  async function loop(): Promise<void> {
    await sleep(firstMs);
    while (!ended.signal.aborted) {
      const next = clock.nowMs() + intervalMs * (1 + JITTER * (2 * random() - 1));
      await task(ended.signal);
      await sleep(next - clock.nowMs());
    }
  }

  return {
    /** Returns at once. A second call changes nothing. */
    start(): void {
      running ??= loop();
    },
    /** Aborts the current run and returns when none runs any more. Safe to call at any time and more than once. */
    async stop(): Promise<void> {
      ended.abort(new Error('the self-test stops'));
      await running;
    },
  };
}
