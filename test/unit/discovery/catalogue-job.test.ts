import { afterEach, describe, expect, test } from 'vitest';
import { createCatalogueJob } from '../../../src/discovery/discovery.ts';
import { NO_CATALOGUE } from '../../../src/discovery/foreign-catalogue.ts';
import { createManualClock } from '../../support/manual-clock.ts';

const START = 1_800_000_000_000;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

const stopping: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stopping.splice(0)) await stop();
});

/** A job over a catalogue whose results the test sets. Times in minutes from the start. */
async function start({ reads = true, readAtMs = null as number | null } = {}) {
  const clock = createManualClock(START);
  const calls = { readsWell: true, readAt: [] as number[], loads: 0, changes: 0, version: 0, isStored: false };
  const catalogue = {
    ...NO_CATALOGUE,
    version: () => calls.version,
    readAtMs: () => readAtMs,
    load: async () => {
      calls.loads += 1;
      if (calls.isStored) calls.version += 1;
      calls.isStored = false;
    },
    read: async () => {
      calls.readAt.push(Math.round((clock.nowMs() - START) / MINUTE));
      if (calls.readsWell) calls.version += 1;
      return calls.readsWell;
    },
  };
  const onChange = async () => {
    calls.changes += 1;
  };
  const job = createCatalogueJob(
    clock,
    catalogue,
    () => reads,
    onChange,
    () => 0.5,
  );
  stopping.push(job.stop);
  job.start();
  job.start();
  // It waits for its first moment now.
  await new Promise((done) => setImmediate(done));
  return { clock, calls, job };
}

describe('the catalogue’s job', () => {
  test('reads soon after the first start, then hourly, and reports each change', async () => {
    const { clock, calls } = await start();
    await clock.advance(3 * HOUR);
    expect(calls.readAt).toEqual([0, 60, 120]);
    expect(calls.changes).toBe(3);
  });

  test('counts the hour from the stored copy, so that restarts do not ask more often', async () => {
    const { clock, calls } = await start({ readAtMs: START - 40 * MINUTE });
    await clock.advance(HOUR);
    expect(calls.readAt).toEqual([20]);
  });

  test('with an older copy reads at once', async () => {
    const { clock, calls } = await start({ readAtMs: START - 5 * HOUR });
    await clock.advance(MINUTE);
    expect(calls.readAt).toEqual([0]);
  });

  test('after failures tries again after 5, 10, 20, 40 and then 60 minutes, and after a good read hourly', async () => {
    const { clock, calls } = await start();
    calls.readsWell = false;
    await clock.advance(200 * MINUTE);
    expect(calls.readAt).toEqual([0, 5, 15, 35, 75, 135, 195]);
    expect(calls.changes).toBe(0);
    calls.readsWell = true;
    await clock.advance(120 * MINUTE);
    expect(calls.readAt.slice(7)).toEqual([255, 315]);
  });

  test('in a process that does not read, loads what another process stored', async () => {
    const { clock, calls } = await start({ reads: false });
    await new Promise((done) => setImmediate(done));
    await clock.advance(HOUR);
    expect([calls.readAt, calls.loads, calls.changes]).toEqual([[], 121, 0]);
    calls.isStored = true;
    await clock.advance(MINUTE);
    expect(calls.changes).toBe(1);
  });

  test('stops at once, also when it never started', async () => {
    const { clock, calls, job } = await start();
    await clock.advance(MINUTE);
    await job.stop();
    await clock.advance(5 * HOUR);
    expect(calls.readAt).toEqual([0]);
    const idle = createCatalogueJob(
      clock,
      NO_CATALOGUE,
      () => true,
      async () => {},
    );
    await idle.stop();
  });
});
