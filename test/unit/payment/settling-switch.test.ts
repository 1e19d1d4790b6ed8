import { afterEach, expect, test, vi } from 'vitest';
import type { Intent } from '../../../src/payment/settler.ts';
import type { Leader, LeaderReport, LocalSettling, MaintainedSettling } from '../../../src/payment/settling.ts';
import { createSwitchedSettling } from '../../../src/payment/settling-remote.ts';

const REPORT: LeaderReport = { status: {}, probes: {} };
const INTENT = { id: 'sale' } as Intent;
const CONTRACT = Buffer.alloc(20);

/** A settlement that notes its calls under a name; `report` shows whether it settles by itself. */
function settlementOf(name: string, done: string[], report: LeaderReport | null): LocalSettling {
  const note =
    <T>(what: string, answer: T) =>
    async (): Promise<T> => {
      done.push(`${name} ${what}`);
      return answer;
    };
  return {
    settle: note('settle', null),
    resume: note('resume', null),
    status: () => ({ unavailable: () => name, cannotSend: () => name, refuses: () => name, refusesCode: () => name }),
    probes: () => ({ [name]: { ok: true } }),
    detail: () => name,
    carry: note('carry', report !== null),
    report: () => report as LeaderReport,
    takeOver: note('takeOver', undefined),
    start: note('start', undefined),
    load: note('load', undefined),
    carryWaiting: note('sweep', undefined),
    refresh: note('refresh', undefined),
    reconcile: note('reconcile', undefined),
    stop: note('stop', undefined),
  };
}

/** An instance that has joined; the test gives and takes its lease. */
async function newInstance(change: Partial<LocalSettling> = {}) {
  const done: string[] = [];
  let joined: Leader | null = null;
  const switched = createSwitchedSettling({
    remote: settlementOf('remote', done, null),
    openLocal: (token) => ({ ...settlementOf(`local ${token}`, done, REPORT), ...change }),
    takeOver: async (dead) => void done.push(`took over ${dead?.join()}`),
    join: async (leader) => {
      joined = leader;
      done.push('joined');
    },
    log: { info: () => {}, warn: () => {} },
  });
  await switched.start(() => void done.push('maintain'));
  if (!joined) throw new Error('the instance has not joined');
  const leader: Leader = joined;
  return { switched, leader, done, drain: () => done.splice(0) };
}

/** Asks everything that a process asks, and returns who answered. */
async function answersOf(switched: MaintainedSettling): Promise<unknown[]> {
  await switched.settle(INTENT, CONTRACT);
  await switched.resume({ id: 'sale' } as Parameters<MaintainedSettling['resume']>[0]);
  await switched.refresh();
  await switched.reconcile(() => false);
  const { unavailable, cannotSend, refuses, refusesCode } = switched.status('usdc-exact');
  return [
    unavailable(),
    cannotSend(),
    refuses(CONTRACT),
    refusesCode(),
    switched.detail(),
    Object.keys(switched.probes())[0],
  ];
}
const ALL = ['settle', 'resume', 'refresh', 'reconcile'];

afterEach(() => void vi.useRealTimers());

test('before it has led, another instance settles, and this one has nothing for others', async () => {
  const { switched, leader, drain } = await newInstance();
  // It counts the space for replies once it knows the other instances.
  expect(drain()).toEqual(['joined', 'remote start']);
  expect(new Set(await answersOf(switched))).toEqual(new Set(['remote']));
  expect(drain()).toEqual(ALL.map((what) => `remote ${what}`));
  expect([await leader.carry('a'), leader.report()]).toEqual([false, null]);
  await switched.stop();
});

test('from lead to stepDown this instance settles, under the lease’s number, and another one after that', async () => {
  const { switched, leader, drain } = await newInstance();
  drain();
  await leader.lead(7);
  expect(drain()).toEqual(['local 7 load', 'maintain']);
  expect(new Set(await answersOf(switched))).toEqual(new Set(['local 7']));
  expect(drain()).toEqual(ALL.map((what) => `local 7 ${what}`));
  expect([await leader.carry('a'), leader.report()]).toEqual([true, REPORT]);
  drain();
  leader.stepDown();
  expect(drain()).toEqual(['local 7 stop']);
  expect(new Set(await answersOf(switched))).toEqual(new Set(['remote']));
  expect([await leader.carry('a'), leader.report()]).toEqual([false, null]);
  drain();
  await leader.lead(9);
  expect(drain()).toEqual(['local 9 load', 'maintain']);
  await switched.stop();
  expect(drain()).toEqual(['local 9 stop']);
});

test('a leader reads the rows that wait once a second, and ceases to when it steps down, also while it loads', async () => {
  vi.useFakeTimers();
  const { switched, leader, drain } = await newInstance();
  await leader.lead(1);
  drain();
  await vi.advanceTimersByTimeAsync(2500);
  expect(drain()).toEqual(['local 1 sweep', 'local 1 sweep']);
  leader.stepDown();
  drain();
  await vi.advanceTimersByTimeAsync(2500);
  expect(drain()).toEqual([]);
  await switched.stop();

  const { promise: loaded, resolve: load } = Promise.withResolvers<void>();
  const slow = await newInstance({ load: () => loaded });
  const leading = slow.leader.lead(2);
  slow.leader.stepDown();
  load();
  await leading;
  slow.drain();
  await vi.advanceTimersByTimeAsync(2500);
  expect(slow.drain()).toEqual([]);
  await slow.switched.stop();
});

test('a beginning that fails is the caller’s to end, and leaves the switch as before once it has stepped down', async () => {
  const load = async () => {
    throw new Error('the ledger cannot be read');
  };
  const { switched, leader, done } = await newInstance({ load });
  await expect(leader.lead(3)).rejects.toThrow('cannot be read');
  leader.stepDown();
  expect(done).toEqual(['joined', 'remote start', 'local 3 stop']);
  expect(switched.status('usdc-exact').unavailable()).toBe('remote');
  await switched.stop();
});

test('what dead instances left is taken over by the instance itself, even if it has stepped down since it was asked', async () => {
  const { switched, leader, drain } = await newInstance();
  await leader.lead(1);
  leader.stepDown();
  drain();
  await leader.takeOver(['dead']);
  expect(drain()).toEqual(['took over dead']);
  await switched.stop();
});

test('its end waits for what a leader left under way', async () => {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const { switched, leader, done } = await newInstance({ stop: () => ended });
  await leader.lead(1);
  leader.stepDown();
  const stopped = switched.stop().then(() => done.push('stopped'));
  await new Promise((next) => setImmediate(next));
  expect(done).not.toContain('stopped');
  end();
  await stopped;
  expect(done).toContain('stopped');
});
