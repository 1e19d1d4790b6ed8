import { afterEach, describe, expect, test } from 'vitest';
import { NO_CATALOGUE } from '../../../src/discovery/catalogue.ts';
import { createCatalogueJob } from '../../../src/discovery/catalogue-job.ts';
import { createManualClock } from '../../support/manual-clock.ts';

const START = 1_800_000_000_000;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

const stopping: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stopping.splice(0)) await stop();
});

/** A job over a catalogue whose results the test sets. Times in minutes from the start. */
function start({ reads = true, readAtMs = null as number | null } = {}) {
  const clock = createManualClock(START);
  const told = { readsWell: true, readAt: [] as number[], loads: 0, changes: 0, version: 0, isStored: false };
  const catalogue = {
    ...NO_CATALOGUE,
    version: () => told.version,
    readAtMs: () => readAtMs,
    load: async () => {
      told.loads += 1;
      if (told.isStored) told.version += 1;
      told.isStored = false;
    },
    read: async () => {
      told.readAt.push(Math.round((clock.nowMs() - START) / MINUTE));
      if (told.readsWell) told.version += 1;
      return told.readsWell;
    },
  };
  const onChange = async () => {
    told.changes += 1;
  };
  const job = createCatalogueJob({ catalogue, reads: () => reads, onChange, clock, random: () => 0.5 });
  stopping.push(job.stop);
  job.start();
  job.start();
  return { clock, told, job };
}

describe('the catalogue’s job', () => {
  test('reads soon after the first start, then hourly, and reports each change', async () => {
    const { clock, told } = start();
    await clock.advance(3 * HOUR);
    expect(told.readAt).toEqual([0, 60, 120]);
    expect(told.changes).toBe(3);
  });

  test('counts the hour from the stored copy, so that restarts do not ask more often', async () => {
    const { clock, told } = start({ readAtMs: START - 40 * MINUTE });
    await clock.advance(HOUR);
    expect(told.readAt).toEqual([20]);
  });

  test('with an older copy reads at once', async () => {
    const { clock, told } = start({ readAtMs: START - 5 * HOUR });
    await clock.advance(MINUTE);
    expect(told.readAt).toEqual([0]);
  });

  test('after failures tries again after 5, 10, 20, 40 and then 60 minutes, and after a good read hourly', async () => {
    const { clock, told } = start();
    told.readsWell = false;
    await clock.advance(200 * MINUTE);
    expect(told.readAt).toEqual([0, 5, 15, 35, 75, 135, 195]);
    expect(told.changes).toBe(0);
    told.readsWell = true;
    await clock.advance(120 * MINUTE);
    expect(told.readAt.slice(7)).toEqual([255, 315]);
  });

  test('in a process that does not read, loads what another process stored', async () => {
    const { clock, told } = start({ reads: false });
    await new Promise((done) => setImmediate(done));
    await clock.advance(HOUR);
    expect([told.readAt, told.loads, told.changes]).toEqual([[], 121, 0]);
    told.isStored = true;
    await clock.advance(MINUTE);
    expect(told.changes).toBe(1);
  });

  test('stops at once, also when it never started', async () => {
    const { clock, told, job } = start();
    await clock.advance(MINUTE);
    await job.stop();
    await clock.advance(5 * HOUR);
    expect(told.readAt).toEqual([0]);
    const idle = createCatalogueJob({ catalogue: NO_CATALOGUE, reads: () => true, onChange: async () => {}, clock });
    await idle.stop();
  });
});
