import { describe, expect, test } from 'vitest';
import { createSchedule } from '../../../src/selftest/self-test.ts';
import { createManualClock, type ManualClock } from '../../support/manual-clock.ts';
import { seed, seededRandom } from '../../support/random.ts';

const MINUTE = 60_000;
const never = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));

function scheduled(clock: ManualClock, task: (signal: AbortSignal) => Promise<void>, random = () => 0.5) {
  return createSchedule(clock, task, 5000, MINUTE, random);
}

describe('the self-test’s schedule', () => {
  test('runs first after some seconds, then at each interval, measured between beginnings', async () => {
    const clock = createManualClock(0);
    const began: number[] = [];
    const schedule = scheduled(clock, async () => {
      began.push(clock.nowMs());
      await clock.sleep(10_000);
    });
    await clock.advance(2 * MINUTE);
    expect(began).toEqual([]);
    schedule.start();
    schedule.start();
    await clock.advance(3 * MINUTE);
    expect(began).toEqual([125_000, 185_000, 245_000]);
    await schedule.stop();
  });

  test(`intervals differ by at most a twentieth, in both directions (seed ${seed})`, async () => {
    const clock = createManualClock(0);
    const began: number[] = [];
    const schedule = scheduled(clock, async () => void began.push(clock.nowMs()), seededRandom('self-test schedule'));
    schedule.start();
    await clock.advance(100 * MINUTE);
    const gaps = began.slice(1).map((at, before) => at - (began[before] ?? 0));
    expect(gaps.length).toBeGreaterThan(90);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(57_000);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(63_000);
    expect(Math.min(...gaps)).toBeLessThan(59_000);
    expect(Math.max(...gaps)).toBeGreaterThan(61_000);
    await schedule.stop();
  });

  test('runs never overlap: a run longer than the interval is followed at once by the next', async () => {
    const clock = createManualClock(0);
    let running = 0;
    const began: number[] = [];
    const schedule = scheduled(clock, async () => {
      expect(++running).toBe(1);
      began.push(clock.nowMs());
      await clock.sleep(90_000);
      running--;
    });
    schedule.start();
    await clock.advance(4 * MINUTE);
    expect(began).toEqual([5000, 95_000, 185_000]);
    const stopped = schedule.stop();
    await clock.advance(MINUTE);
    await stopped;
    expect(running).toBe(0);
  });

  test('stop aborts the current run and waits for it; nothing runs afterwards', async () => {
    const clock = createManualClock(0);
    let ended = 0;
    const schedule = scheduled(clock, async (signal) => {
      await never(signal);
      ended++;
    });
    schedule.start();
    await clock.advance(6000);
    await schedule.stop();
    expect([ended, clock.pendingSleeps()]).toEqual([1, []]);
    await schedule.stop();
    await clock.advance(10 * MINUTE);
    expect(ended).toBe(1);
  });

  test('stop before the first run prevents it', async () => {
    const clock = createManualClock(0);
    let runs = 0;
    const schedule = scheduled(clock, async () => void runs++);
    schedule.start();
    await schedule.stop();
    await clock.advance(10 * MINUTE);
    expect(runs).toBe(0);
    await scheduled(clock, async () => void runs++).stop();
    expect(runs).toBe(0);
  });
});
