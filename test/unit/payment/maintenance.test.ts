import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createMaintenance } from '../../../src/payment/settling.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Maintenance every second of a settlement that notes what it is asked for. */
function newMaintenance({ fails = false, reconciled = Promise.resolve() } = {}) {
  const done: string[] = [];
  const warned: object[] = [];
  let maintain = () => {};
  const maintenance = createMaintenance({
    settling: {
      start: async (given) => {
        maintain = given;
        done.push('start');
      },
      refresh: async () => {
        done.push('refresh');
        if (fails) throw new Error('no gas price');
      },
      reconcile: async (isInUse) => {
        done.push(`reconcile ${isInUse({ id: 'used' } as Parameters<typeof isInUse>[0])}`);
        await reconciled;
      },
      stop: async () => void done.push('stop'),
    },
    isInUse: ({ id }) => id === 'used',
    intervalMs: 1000,
    log: { info: () => {}, warn: (detail) => void warned.push(detail) },
  });
  return { maintenance, maintain: () => maintain(), warned, drain: () => done.splice(0) };
}
const ROUND = ['refresh', 'reconcile true'];

test('a round comes after the start, after each interval and when the settlement asks for one, and none after the end', async () => {
  const { maintenance, maintain, drain } = newMaintenance();
  await maintenance.start();
  expect(drain()).toEqual(['start', ...ROUND]);
  await vi.advanceTimersByTimeAsync(2000);
  expect(drain()).toEqual([...ROUND, ...ROUND]);
  maintain();
  expect(drain()).toEqual(ROUND);
  await maintenance.stop();
  await vi.advanceTimersByTimeAsync(5000);
  expect(drain()).toEqual(['stop']);
});

test('a part that fails is logged once and delays no other part, and a slow part delays only itself', async () => {
  const { promise: reconciled, resolve: end } = Promise.withResolvers<void>();
  const { maintenance, warned, drain } = newMaintenance({ fails: true, reconciled });
  await maintenance.start();
  await vi.advanceTimersByTimeAsync(2000);
  expect(drain()).toEqual(['start', ...ROUND, 'refresh', 'refresh']);
  // Three rounds have failed. One line says so, and the metric while it lasts.
  expect([warned.length, maintenance.failing()]).toEqual([1, { refresh: true, reconcile: false }]);
  let isStopped = false;
  const stopped = maintenance.stop().then(() => {
    isStopped = true;
  });
  await vi.advanceTimersByTimeAsync(1000);
  expect([drain(), isStopped]).toEqual([['stop'], false]);
  end();
  await stopped;
});
