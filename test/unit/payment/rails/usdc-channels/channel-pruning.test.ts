import { expect, test } from 'vitest';
import { createChannelPruning } from '../../../../../src/payment/channels/channel.ts';
import { createManualClock } from '../../../../support/manual-clock.ts';

const HOUR_MS = 3_600_000;
const START_MS = 1_800_000_000_000;

test('rows of an hour without a read are deleted every ten minutes, 500 at a time until none is left', async () => {
  const clock = createManualClock(START_MS);
  const asked: [number, number][] = [];
  let left = 1200;
  const prune = async (beforeMs: number, limit: number) => {
    asked.push([beforeMs - clock.nowMs(), limit]);
    const deleted = Math.min(left, limit);
    left -= deleted;
    return deleted;
  };
  const run = createChannelPruning({ prune }, clock);
  await run();
  expect([asked, left]).toEqual([Array(3).fill([-HOUR_MS, 500]), 0]);
  await clock.advance(599_999);
  await run();
  expect(asked).toHaveLength(3);
  await clock.advance(1);
  await run();
  expect(asked).toHaveLength(4);
});

test('a round that failed is made again at the next call', async () => {
  let calls = 0;
  const prune = async () => {
    calls++;
    if (calls === 1) throw new Error('the disk is full');
    return 0;
  };
  const run = createChannelPruning({ prune }, createManualClock(START_MS));
  await expect(run()).rejects.toThrow('the disk is full');
  await run();
  expect(calls).toBe(2);
});
