import type { Clock } from '../lib/clock.ts';

interface ScheduleOptions {
  /** Must not reject; when the signal aborts it returns soon. */
  readonly task: (signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  /** From the start to the first run. */
  readonly firstMs: number;
  /** Between the beginnings of two runs, on average. */
  readonly intervalMs: number;
  /** From 0 to 1. */
  readonly random: () => number;
}

/** How far an interval differs from the configured one at most, to either side. */
const JITTER = 0.05;

/**
 * Runs a task shortly after the start and then at every interval, one run at a time; a run that takes longer is followed at once by the next.
 * Intervals are uneven by a twentieth, so that runs wander away from the full hour, when everybody else's timers fire.
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
    /** Returns at once; a second call changes nothing. */
    start(): void {
      running ??= loop();
    },
    /** Ends a run under way and returns when nothing runs any more. Safe to call at any time and more than once. */
    async stop(): Promise<void> {
      ended.abort(new Error('the self-test stops'));
      await running;
    },
  };
}
