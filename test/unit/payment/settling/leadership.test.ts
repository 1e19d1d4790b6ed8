import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { openSettling, PAYER } from '../../../support/payment/settling-world.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }));
afterEach(() => void vi.useRealTimers());

const HEX = `0x${'09'.repeat(20)}`;

/** An instance that has joined the others. The test gives and takes its lease; another instance settles meanwhile. */
async function newInstance() {
  const world = openSettling({ leads: 'in turn' });
  const { link, script, settling, done } = world;
  const status = { unavailable: 'there', codeRefused: 'there', payers: [[HEX, 'there']] as const };
  link.reported = { status: { 'usdc-exact': status }, probes: { facilitator: { ok: false, detail: 'there' } } };
  Object.assign(script, { unavailable: 'here', codeRefused: 'here', refused: [[HEX, 'here']], detail: 'here' });
  script.probe = { ok: false, detail: 'here' };
  await settling.start(() => void done.push('maintain'));
  return { ...world, leader: world.leader(), drain: () => done.splice(0) };
}

/** Who answers for the rail, by each of its questions: `here` or `there`. */
function whoAnswers({ settling }: Awaited<ReturnType<typeof newInstance>>): ReadonlySet<unknown> {
  const { unavailable, cannotSend, refuses, refusesCode } = settling.status('usdc-exact');
  const probe = settling.probes().facilitator?.detail;
  return new Set([unavailable(), cannotSend(), refuses(PAYER), refusesCode(), probe]);
}

/** Which rows this process has settled, of a new one, one that is presented again, and one that no call works on. */
async function settledHere({ settle, settling, stored, unknown, given }: Awaited<ReturnType<typeof newInstance>>) {
  const name = String(given.length);
  const rows = [await stored(name), await unknown(`${name} again`), await unknown(`${name} left`)];
  await settle(rows[0]!);
  await settling.resume(rows[1]!);
  await settling.reconcile(() => false);
  return rows.map(({ id }) => given.some((one) => one.id === id));
}

test('before it has led, another instance settles, and this one has nothing for others', async () => {
  const instance = await newInstance();
  const { settling, leader, link, drain } = instance;
  await settling.refresh();
  expect([whoAnswers(instance), settling.detail(), drain()]).toEqual([new Set(['there']), null, []]);
  expect([await settledHere(instance), link.asked.length]).toEqual([[false, false, false], 2]);
  expect([await leader.carry('a'), leader.report(), settling.report()]).toEqual([false, null, null]);
  await settling.stop();
});

test('from lead to stepDown this instance settles, under the lease’s number, and another one after that', async () => {
  const instance = await newInstance();
  const { settling, leader, link, drain } = instance;
  await leader.lead(7);
  expect(drain()).toEqual(['loads 7', 'maintain']);
  await settling.refresh();
  expect([whoAnswers(instance), settling.detail()]).toEqual([new Set(['here']), 'here']);
  expect(drain()).toEqual(['refreshes 7', 'probes']);
  expect([await settledHere(instance), link.asked]).toEqual([[true, true, true], []]);
  expect(await leader.carry('a')).toBe(true);
  expect([leader.report()?.status['usdc-exact']?.unavailable, settling.report()]).toEqual(['here', leader.report()]);
  leader.stepDown();
  expect([drain(), whoAnswers(instance)]).toEqual([['stops 7'], new Set(['there'])]);
  expect([await settledHere(instance), link.asked.length]).toEqual([[false, false, false], 2]);
  expect([await leader.carry('a'), leader.report()]).toEqual([false, null]);
  await leader.lead(9);
  expect(drain()).toEqual(['loads 9', 'maintain']);
  await settling.stop();
  expect(drain()).toEqual(['stops 9']);
});

test('a leader settles the rows that wait once a second, whose requests were lost, and ceases when it steps down', async () => {
  const { settling, leader, stored, reserved, given, pass } = await newInstance();
  await leader.lead(1);
  const second = async (ms: number) => {
    await vi.advanceTimersByTimeAsync(ms);
    await pass(0);
    return given.splice(0).map(({ id }) => id);
  };
  await reserved('reserved', 'other');
  await stored('sent', { by: 'other', sent: true });
  const ids = [await stored('a', { by: 'other' }), await stored('b')].map(({ id }) => id);
  expect([await second(999), (await second(1)).sort()]).toEqual([[], ids.sort()]);
  const { id } = await stored('c', { by: 'other' });
  expect([await second(999), await second(1), await second(1000)]).toEqual([[], [id], []]);
  leader.stepDown();
  await stored('d', { by: 'other' });
  expect(await second(2500)).toEqual([]);
  await settling.stop();
});

test('an instance that steps down while it begins to lead does not settle what waits', async () => {
  const { settling, leader, script, stored, given, pass } = await newInstance();
  const { promise: loaded, resolve: load } = Promise.withResolvers<void>();
  script.loads = loaded;
  const leading = leader.lead(2);
  leader.stepDown();
  load();
  await leading;
  await stored('a', { by: 'other' });
  await vi.advanceTimersByTimeAsync(2500);
  await pass(0);
  expect(given).toEqual([]);
  await settling.stop();
});

test('a beginning that fails is the caller’s to end, and leaves all as before once it has stepped down', async () => {
  const instance = await newInstance();
  const { settling, leader, script, drain } = instance;
  script.loads = Promise.reject(new Error('the ledger cannot be read'));
  await expect(leader.lead(3)).rejects.toThrow('cannot be read');
  leader.stepDown();
  expect([drain(), whoAnswers(instance)]).toEqual([['loads 3', 'stops 3'], new Set(['there'])]);
  await settling.stop();
});

test('its end waits for what a leader left under way', async () => {
  const { settling, leader, script, stored, stateOf, pass } = await newInstance();
  const [stops, settles] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  [script.stops, script.held] = [stops.promise, settles.promise];
  await leader.lead(1);
  const payment = await stored('a');
  void leader.carry(payment.id);
  leader.stepDown();
  let isStopped = false;
  const stopped = settling.stop().then(() => {
    isStopped = true;
  });
  for (const { resolve } of [stops, settles]) {
    await pass(0);
    expect(isStopped).toBe(false);
    resolve();
  }
  await stopped;
  expect(await stateOf(payment)).toBe('settled');
});
