import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { openSettling } from '../../../support/payment/settling-world.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }));
afterEach(() => void vi.useRealTimers());

/** Maintenance every second of an instance with a reservation that a call works on: each round over the rows meets it. */
async function newMaintenance(leads: 'always' | 'in turn') {
  const world = openSettling({ leads });
  const { id } = await world.reserved('in use');
  const asked: string[] = [];
  const maintenance = world.maintenance((payment) => asked.push(payment.id) > 0 && payment.id === id);
  const drain = () => [...world.done.splice(0).filter((what) => what !== 'probes'), ...asked.splice(0)];
  const second = async (): Promise<string[]> => {
    await vi.advanceTimersByTimeAsync(1000);
    await world.pass(0);
    return drain();
  };
  return { ...world, maintenance, drain, second, id };
}

test('a round comes after the start, after each interval, and none after the end', async () => {
  const { maintenance, drain, second, id, pass } = await newMaintenance('always');
  await maintenance.start();
  await pass(0);
  expect(drain()).toEqual(['loads', 'refreshes', id]);
  for (let time = 0; time < 2; time++) expect(await second()).toEqual(['refreshes', id]);
  await maintenance.stop();
  expect([await second(), await second()]).toEqual([['stops'], []]);
});

test('a round comes at once when an instance begins to lead', async () => {
  const { maintenance, leader, drain, pass, id } = await newMaintenance('in turn');
  await maintenance.start();
  await pass(0);
  expect(drain()).toEqual([id]);
  await leader().lead(5);
  await pass(0);
  expect(drain()).toEqual(['loads 5', 'refreshes 5', id]);
  await maintenance.stop();
});

test('a part that fails is logged once and delays no other part, and a slow part delays only itself', async () => {
  const { maintenance, drain, second, unknown, script, warned, pass, id } = await newMaintenance('always');
  const late = Promise.withResolvers<void>();
  script.meanwhile = () => late.promise;
  script.refreshes = Promise.reject(new Error('no gas price'));
  await unknown('slow');
  await maintenance.start();
  await pass(0);
  expect(drain()).toEqual(['loads', 'refreshes', id]);
  expect([await second(), await second()]).toEqual([['refreshes'], ['refreshes']]);
  // Three rounds have failed. One line says so, and the metric while it lasts.
  expect([warned.length, maintenance.failing()]).toEqual([1, { refresh: true, reconcile: false }]);
  let isStopped = false;
  const stopped = maintenance.stop().then(() => {
    isStopped = true;
  });
  expect([await second(), isStopped]).toEqual([['stops'], false]);
  late.resolve();
  await stopped;
});
