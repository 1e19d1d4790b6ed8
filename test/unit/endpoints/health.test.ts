import { describe, expect, test } from 'vitest';
import type { CollectorStatus } from '../../../src/collector/store/facts.ts';
import { health } from '../../../src/endpoints/network.ts';
import { collectedStatus, PROVENANCE, UNTIL, useCollected } from './collected-fixture.ts';
import { run } from './fixture.ts';

const given = useCollected();

/** The answer for a collector status, `seconds` after its newest block. */
async function answer(changes: Partial<CollectorStatus>, seconds = 0) {
  given().status = { ...collectedStatus(), ...changes };
  given().nowMs = (UNTIL + seconds) * 1000 + 400;
  return (await run(health, given().sources)) as {
    status: string;
    readings: Record<string, number>;
    freshness: Record<string, number>;
  };
}
const collectedAt = (number: number, at: number) => ({ collected: { number, at } });

describe('health', () => {
  test('ok, with thresholds and readings', async () => {
    expect(await answer({ backfill: { ...collectedStatus().backfill, share: 0.12345 } })).toEqual({
      status: 'ok',
      thresholds: { stalledSeconds: 30, lagBlocks: 60, lagSeconds: 30 },
      readings: {
        headMovedSecondsAgo: 0,
        headCheckedSecondsAgo: 0,
        lagBlocks: 0,
        lagSeconds: 0,
        windowCollectedShare: 0.1235,
        windowCollected: 0.1235,
      },
      ...PROVENANCE,
    });
  });

  test('stalled when the head has not moved, whether or not providers answer', async () => {
    const checked = (seconds: number) => ({ headCheckedMs: (UNTIL + seconds) * 1000 });
    expect((await answer(checked(30), 30)).status).toBe('ok');
    expect(await answer(checked(31), 31)).toMatchObject({
      status: 'stalled',
      readings: { headMovedSecondsAgo: 31, lagSeconds: 0 },
    });
    expect(await answer({}, 31)).toMatchObject({
      status: 'stalled',
      readings: { headCheckedSecondsAgo: 31, lagSeconds: 31 },
    });
    expect((await answer({ head: null })).status).toBe('stalled');
    expect((await answer({ headAdvancedMs: null })).status).toBe('stalled');
  });

  test('lagging in blocks, in seconds, or before anything is collected', async () => {
    expect((await answer(collectedAt(940, UNTIL - 30))).status).toBe('ok');
    expect(await answer(collectedAt(939, UNTIL - 30))).toMatchObject({
      status: 'lagging',
      readings: { lagBlocks: 61 },
    });
    expect(await answer(collectedAt(999, UNTIL - 31))).toMatchObject({
      status: 'lagging',
      freshness: { lagSeconds: 31 },
    });
    expect((await answer({ collected: null })).status).toBe('lagging');
  });

  test('a head that moves while its block is not yet known to other providers is no lag, and never a negative one', async () => {
    expect(await answer(collectedAt(1001, UNTIL + 1))).toMatchObject({
      status: 'ok',
      freshness: { lagBlocks: 0, lagSeconds: 0 },
    });
  });

  test('after a restart without providers the lag counts from the head’s last move', async () => {
    expect(await answer({ headCheckedMs: null }, 20)).toMatchObject({
      status: 'ok',
      readings: { headCheckedSecondsAgo: null, lagSeconds: 20 },
    });
  });

  test('every status but ok reports a fault', () => {
    const bad = (status: 'ok' | 'stalled' | 'lagging') => health.reportsFault?.({ status } as never);
    expect([bad('ok'), bad('stalled'), bad('lagging')]).toEqual([false, true, true]);
  });
});
