import { expect, test } from 'vitest';
import { createMembership, type Leading } from '../../../src/instances/membership.ts';
import type { InstancesStore, Standing } from '../../../src/store/ports/instances.ts';
import { createManualClock } from '../../support/manual-clock.ts';
import { quiet } from '../../support/quiet.ts';

const NOON = Date.UTC(2026, 2, 3, 12);
const SECOND = 1000;

/** An instance whose ledger answers each heartbeat as the test decides, and the list of calls that it made. */
function newInstance() {
  const clock = createManualClock(NOON);
  const done: string[] = [];
  const ledger = {
    fencingToken: 1 as number | null,
    dead: [] as string[],
    reported: null as string | null,
    /** Whether heartbeats are answered. */
    answers: true,
    heartbeats: 0,
  };
  const never = new Promise<never>(() => {});
  const store: InstancesStore = {
    heartbeat: async (bootId): Promise<Standing> => {
      ledger.heartbeats += 1;
      if (!ledger.answers) return never;
      return { fencingToken: ledger.fencingToken, living: [bootId], dead: [...ledger.dead], reported: ledger.reported };
    },
    report: async (fencingToken, text) => done.push(`reported ${text} under ${fencingToken}`) > 0,
    markDead: async () => {},
    forget: async (bootId) => {
      ledger.dead = ledger.dead.filter((one) => one !== bootId);
      done.push(`forgot ${bootId}`);
    },
    leave: async () => void done.push('left'),
  };
  const leading: Leading = {
    lead: async (fencingToken) => void done.push(`lead ${fencingToken}`),
    stepDown: () => void done.push('step down'),
    takeOver: async (dead) => void done.push(`took over ${dead.join()}`),
    report: () => null,
  };
  const membership = createMembership({ clock, log: quiet }, store, 'me');
  /** Moves on by whole heartbeats, so that each has its turn. */
  const seconds = async (count: number) => {
    for (let at = 0; at < count; at++) {
      await clock.advance(SECOND);
      for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    }
  };
  return { clock, ledger, leading, membership, done, seconds };
}

test('leads once while it holds the lease, and gives it up when it stops', async () => {
  const { leading, membership, done, seconds } = newInstance();
  await membership.start(leading);
  await seconds(20);
  expect(membership.leads()).toBe(true);
  await membership.stop();
  expect(membership.leads()).toBe(false);
  expect(done).toEqual(['lead 1', 'step down', 'left']);
});

test('does not lead while another instance does, and begins when it gets the lease', async () => {
  const { ledger, leading, membership, done, seconds } = newInstance();
  ledger.fencingToken = null;
  await membership.start(leading);
  await seconds(3);
  expect([membership.leads(), done]).toEqual([false, []]);
  ledger.fencingToken = 7;
  await seconds(2);
  expect([membership.leads(), done]).toEqual([true, ['lead 7']]);
  await membership.stop();
});

test('steps down before the lease ends when the ledger does not answer, and leads again with a new fencing token', async () => {
  const { ledger, leading, membership, done, seconds } = newInstance();
  await membership.start(leading);
  ledger.answers = false;
  await seconds(3);
  expect(membership.leads()).toBe(true);
  await seconds(2);
  expect(membership.leads()).toBe(false);
  await seconds(3);
  expect(done).toEqual(['lead 1', 'step down']);
  [ledger.answers, ledger.fencingToken] = [true, 5];
  await seconds(4);
  expect([membership.leads(), done]).toEqual([true, ['lead 1', 'step down', 'lead 5']]);
  await membership.stop();
});

test('that got the lease again while it was paused ends its term with the old fencing token', async () => {
  const { ledger, leading, membership, done, seconds } = newInstance();
  await membership.start(leading);
  ledger.fencingToken = 3;
  await seconds(2);
  expect(done).toEqual(['lead 1', 'step down', 'lead 3']);
  await membership.stop();
});

test('a first heartbeat that a busy ledger does not answer is sent again, five times in all', async () => {
  const late = newInstance();
  late.ledger.answers = false;
  const joined = late.membership.start(late.leading);
  await late.seconds(5);
  late.ledger.answers = true;
  await late.seconds(4);
  await joined;
  expect([late.membership.leads(), late.done]).toEqual([true, ['lead 1']]);
  await late.membership.stop();
  const never = newInstance();
  never.ledger.answers = false;
  const refused = expect(never.membership.start(never.leading)).rejects.toThrow('the ledger cannot be reached');
  await never.seconds(30);
  await refused;
  expect(never.ledger.heartbeats).toBe(5);
});

test('a failed start of leading is ended and tried again', async () => {
  const { leading, membership, done, seconds } = newInstance();
  let fails = 2;
  const shaky: Leading = {
    ...leading,
    lead: async (fencingToken) => {
      if (fails-- > 0) throw new Error('the ledger cannot be read');
      await leading.lead(fencingToken);
    },
  };
  await expect(membership.start(shaky)).rejects.toThrow('cannot be read');
  expect(membership.leads()).toBe(false);
  await membership.stop();
  const other = newInstance();
  fails = 0;
  let failing = 0;
  await other.membership.start({
    ...other.leading,
    lead: async (fencingToken) => {
      if (fencingToken === 2 && failing++ === 0) throw new Error('the ledger cannot be read');
      await other.leading.lead(fencingToken);
    },
  });
  other.ledger.fencingToken = 2;
  await other.seconds(4);
  expect(other.done).toEqual(['lead 1', 'step down', 'step down', 'lead 2']);
  expect(other.membership.leads()).toBe(true);
  await other.membership.stop();
  expect(done).toEqual(['step down', 'left']);
  await seconds(1);
});

test('heartbeats go on while the payments of dead instances are taken over, which happens once', async () => {
  const { ledger, leading, membership, done, seconds } = newInstance();
  const { promise: taken, resolve: finish } = Promise.withResolvers<void>();
  ledger.dead = ['dead'];
  await membership.start({
    ...leading,
    takeOver: async (dead) => {
      await leading.takeOver(dead);
      await taken;
    },
  });
  await seconds(30);
  expect([membership.leads(), done]).toEqual([true, ['lead 1', 'took over dead']]);
  finish();
  await seconds(2);
  expect(done).toEqual(['lead 1', 'took over dead', 'forgot dead']);
  await membership.stop();
});

test('a failed take-over is tried again, and no instance is deleted before it succeeds', async () => {
  const { ledger, leading, membership, done, seconds } = newInstance();
  let failures = 2;
  ledger.dead = ['dead'];
  await membership.start({
    ...leading,
    takeOver: async (dead) => {
      if (failures-- > 0) throw new Error('the ledger cannot be written');
      await leading.takeOver(dead);
    },
  });
  await seconds(5);
  expect(done).toEqual(['lead 1', 'took over dead', 'forgot dead']);
  await membership.stop();
});

test('the leader’s report is not valid when the ledger no longer answers', async () => {
  const { ledger, leading, membership, seconds } = newInstance();
  [ledger.fencingToken, ledger.reported] = [null, 'report'];
  await membership.start(leading);
  await seconds(2);
  expect(membership.reported()).toBe('report');
  ledger.answers = false;
  await seconds(8);
  expect(membership.reported()).toBeNull();
  // Its last heartbeat is under way, and is given up first.
  await Promise.all([membership.stop(), seconds(3)]);
});
