import { describe, expect, test } from 'vitest';
import type { ChainClient } from '../../../src/chain/rpc/client.ts';
import { createBudget, withinBudget } from '../../../src/collector/collector.ts';
import { createSizer } from '../../../src/collector/context.ts';
import { createVirtualClock } from '../../support/chain/arc-simulator/virtual-clock.ts';

const { signal } = new AbortController();

describe('the request budget', () => {
  test('100 requests at 2 a second take 49 seconds, because at most two unused requests are saved', async () => {
    const clock = createVirtualClock(0, 1);
    const budget = createBudget(2, clock);
    clock.jump(3_600_000);
    const startMs = clock.nowMs();
    for (let taken = 0; taken < 100; taken += 1) await budget.take(0, signal);
    expect(clock.nowMs() - startMs).toBeCloseTo(49_000, -2);
  });

  test('a request with a reserve waits until another one is left over; a request without goes at once', async () => {
    const clock = createVirtualClock(0, 1);
    const budget = createBudget(1, clock);
    await budget.take(0, signal);
    await budget.take(0, signal);
    await budget.take(1, signal);
    expect(clock.nowMs()).toBe(2000);
    await budget.take(0, signal);
    expect(clock.nowMs()).toBe(2000);
  });

  test('later requests wait until an overdraft is filled up', async () => {
    const clock = createVirtualClock(0, 1);
    const budget = createBudget(1, clock);
    for (let at = 0; at < 5; at += 1) budget.overdraw();
    await budget.take(0, signal);
    expect(clock.nowMs()).toBe(4000);
  });

  test('the wait rejects when the signal aborts', async () => {
    const clock = createVirtualClock(0, 2);
    const budget = createBudget(1, clock);
    const control = new AbortController();
    budget.overdraw();
    budget.overdraw();
    const waiting = budget.take(0, control.signal);
    control.abort(new Error('stop'));
    await expect(waiting).rejects.toThrow('stop');
  });

  test('a client behind the budget counts the requests of failovers', async () => {
    const clock = createVirtualClock(0, 1);
    const budget = createBudget(1, clock);
    let requests = 0;
    const failsOver = {
      chainId: 1,
      publicUrl: '',
      batch: async (_calls: unknown, { onRequest }: { onRequest?: () => void } = {}) => {
        for (let provider = 0; provider < 3; provider += 1) onRequest?.();
        return [];
      },
    } as unknown as ChainClient;
    const chain = withinBudget(failsOver, budget, 0, signal, () => {
      requests += 1;
    });
    await chain.batch([]);
    await chain.batch([]);
    await chain.batch([]);
    expect(requests).toBe(9);
    // Seven requests, beside the two saved ones, come before the last batch's first.
    expect(clock.nowMs()).toBe(5000);
  });
});

test('the collector’s requests have the rank `collect`, unless a call names another', async () => {
  const ranks: unknown[] = [];
  const chain = {
    chainId: 1,
    publicUrl: 'x',
    ready: async () => {},
    requestsPerSecond: () => 7,
    request: async (_method: string, _params: unknown, options?: { rank?: string }) => ranks.push(options?.rank),
    batch: async (_calls: unknown, options?: { rank?: string }) => {
      ranks.push(options?.rank);
      return [];
    },
  } as unknown as ChainClient;
  const collecting = withinBudget(chain, createBudget(100, createVirtualClock(0, 1)), 0, signal, () => {});
  await collecting.request('a', []);
  await collecting.batch([]);
  await collecting.request('a', [], { rank: 'free' });
  expect(ranks).toEqual(['collect', 'collect', 'free']);
  expect(collecting.requestsPerSecond()).toBe(7);
  await collecting.ready('free');
});

describe('a sizer', () => {
  test('halves down to one, returns false when it cannot, and doubles up to its maximum', () => {
    const sizer = createSizer(10, 4);
    expect([sizer.shrink(), sizer.shrink(), sizer.size, sizer.shrink()]).toEqual([true, true, 1, false]);
    for (let times = 0; times < 5; times += 1) sizer.grow();
    expect(sizer.size).toBe(10);
  });
});
