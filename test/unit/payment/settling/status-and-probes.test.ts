import { describe, expect, test } from 'vitest';
import type { LeaderReport } from '../../../../src/payment/settling.ts';
import { openSettling, PAYER, WAIT_MS } from '../../../support/payment/settling-world.ts';

const HEX = `0x${'09'.repeat(20)}`;
const OTHER = Buffer.alloc(20, 8);
const WELL = { unavailable: null, cannotSend: null, codeRefused: null, payers: [] };
const BOTH_WELL = { 'usdc-exact': WELL, 'usdc-gateway': WELL };

/** What a sale asks of a rail's settler. */
function statusOf({ settling }: ReturnType<typeof openSettling>, rail = 'usdc-exact') {
  const { unavailable, cannotSend, refuses, refusesCode } = settling.status(rail);
  return [unavailable(), cannotSend(), refuses(PAYER), refuses(OTHER), refusesCode()];
}

describe('the process that settles', () => {
  test('sees and reports why each rail cannot settle now, whom it refuses, and whether it refuses accounts with code', () => {
    const world = openSettling();
    const { script, settling } = world;
    expect(settling.report()).toEqual({ status: BOTH_WELL, probes: {} });
    script.unavailable = 'earlier settlements are late';
    const late = { ...WELL, unavailable: script.unavailable, cannotSend: script.unavailable };
    expect(settling.report()?.status).toEqual({ ...BOTH_WELL, 'usdc-exact': late });
    expect(statusOf(world)).toEqual([late.unavailable, late.unavailable, null, null, null]);

    [script.unavailable, script.codeRefused] = [null, 'the budget is used up'];
    script.refused = [[HEX, 'its payments exhaust their gas']];
    const refusing = { ...WELL, codeRefused: script.codeRefused, payers: script.refused };
    expect(settling.report()?.status['usdc-exact']).toEqual(refusing);
    expect(statusOf(world)).toEqual([null, null, 'its payments exhaust their gas', null, 'the budget is used up']);
    [script.codeRefused, script.refused] = [null, []];
    expect(settling.report()?.status).toEqual(BOTH_WELL);
  });

  test('reports a payer until the refusal ends, also when it began after the payer’s settlement had ended', async () => {
    const { script, settling, settle, stored } = openSettling();
    script.settles = 'fails';
    // One of another process, and one of its own.
    await settling.carry((await stored('a', { by: 'other' })).id);
    await settle(await stored('b'));
    expect(settling.report()?.status).toEqual(BOTH_WELL);
    script.refused = [[HEX, 'its payments exhaust their gas']];
    for (let time = 0; time < 2; time++)
      expect(settling.report()?.status['usdc-exact']?.payers).toEqual(script.refused);
  });

  test('of a settler that refuses nobody reports no payers, and no reason of its own not to send', () => {
    const world = openSettling();
    world.script.gatewayUnavailable = 'a transfer waits';
    const waits = { ...WELL, unavailable: 'a transfer waits', cannotSend: 'a transfer waits' };
    expect(world.settling.report()?.status).toEqual({ ...BOTH_WELL, 'usdc-gateway': waits });
    expect(statusOf(world, 'usdc-gateway')).toEqual(['a transfer waits', 'a transfer waits', null, null, null]);
  });

  test('ends the sales with a budget that is used up, and not what is owed already', () => {
    const world = openSettling();
    world.script.spent = 'the day’s gas budget is used up';
    expect(world.settling.report()?.status['usdc-exact']).toEqual({ ...WELL, unavailable: world.script.spent });
    expect(statusOf(world).slice(0, 2)).toEqual([world.script.spent, null]);
    world.script.unavailable = 'earlier settlements are late';
    expect(statusOf(world).slice(0, 2)).toEqual([world.script.unavailable, world.script.unavailable]);
  });

  test('refuses nothing on a rail that is off, and does not report it', () => {
    const world = openSettling({ rails: ['usdc-exact'] });
    world.script.gatewayUnavailable = 'a transfer waits';
    expect(statusOf(world, 'usdc-gateway')).toEqual([null, null, null, null, null]);
    expect(world.settling.report()?.status).toEqual({ 'usdc-exact': WELL });
  });

  test('tells the operator what a settler notes although it works', () => {
    const { script, settling } = openSettling();
    expect(settling.detail()).toBeNull();
    script.detail = 'gas for a day is left';
    expect(settling.detail()).toBe(script.detail);
  });
});

describe('what another process reported', () => {
  const rail = { unavailable: null, codeRefused: null, payers: [] };
  const newSeller = () => openSettling({ leads: 'in turn' });
  const reportOf = (exact: object, gateway: object = {}): LeaderReport => ({
    status: { 'usdc-exact': { ...rail, ...exact }, 'usdc-gateway': { ...rail, ...gateway } },
    probes: {},
  });

  test('is each rail’s status by name, until it reports otherwise', () => {
    const { settling, link } = newSeller();
    // Asked for once: a report changes what they say.
    const [exact, gateway] = [settling.status('usdc-exact'), settling.status('usdc-gateway')];
    const probes = { gateway: { ok: false, detail: 'away' } };
    link.reported = { ...reportOf({ unavailable: 'short of gas' }), probes };
    expect([exact.unavailable(), gateway.unavailable(), settling.probes()]).toEqual(['short of gas', null, probes]);
    link.reported = reportOf({}, { unavailable: 'a payment waits' });
    expect([exact.unavailable(), gateway.unavailable(), settling.probes()]).toEqual([null, 'a payment waits', {}]);
    // A rail that is off there.
    link.reported = { status: { 'usdc-exact': rail }, probes: {} };
    expect([gateway.unavailable(), gateway.refuses(PAYER), gateway.refusesCode()]).toEqual([null, null, null]);
  });

  test.each([
    ['the payers that it names', { payers: [[HEX, 'burns gas']] }, [null, null, 'burns gas', null, null]],
    ['accounts with code while it says so', { codeRefused: 'no budget' }, [null, null, null, null, 'no budget']],
  ])('refuses %s, on the rail that it names, and nothing else', (_, said, expected) => {
    const world = newSeller();
    world.link.reported = reportOf(said);
    expect(statusOf(world)).toEqual(expected);
    expect(statusOf(world, 'usdc-gateway')).toEqual([null, null, null, null, null]);
    world.link.reported = reportOf({});
    expect(statusOf(world)).toEqual([null, null, null, null, null]);
  });

  test('says apart what ends the sales and what ends the sending; the previous version’s report says one for both', () => {
    const world = newSeller();
    world.link.reported = reportOf({ unavailable: 'no budget', cannotSend: null });
    expect(statusOf(world).slice(0, 2)).toEqual(['no budget', null]);
    world.link.reported = reportOf({ unavailable: 'no budget' });
    expect(statusOf(world).slice(0, 2)).toEqual(['no budget', 'no budget']);
    world.link.reported = null;
    expect(statusOf(world)).toEqual([null, null, null, null, null]);
  });

  test('stops sales on every rail once it is stale, whatever it says', () => {
    const world = newSeller();
    world.link.stale = 'the process that settles does not answer';
    for (world.link.reported of [null, reportOf({})])
      for (const name of ['usdc-exact', 'usdc-gateway'])
        expect(statusOf(world, name).slice(0, 2)).toEqual([world.link.stale, world.link.stale]);
  });
});

describe('a remote service', () => {
  const AWAY = { ok: false, detail: 'away' };

  test('is probed once a minute, and a new fault is logged once', async () => {
    const { settling, script, clock, done, warned } = openSettling();
    const probes = () => done.filter((what) => what === 'probes').length;
    expect(settling.probes()).toEqual({});
    for (let round = 0; round < 3; round++) await settling.refresh();
    expect([probes(), settling.probes()]).toEqual([1, { facilitator: { ok: true } }]);
    script.probe = AWAY;
    for (let minute = 0; minute < 3; minute++) {
      await clock.advance(60_000);
      await settling.refresh();
    }
    expect([probes(), settling.report()?.probes]).toEqual([4, { facilitator: AWAY }]);
    expect(warned).toEqual([{ rail: 'facilitator', detail: 'away' }]);
  });

  test('that did not answer is asked again after five seconds, so that one lost answer does not keep it unready for a minute', async () => {
    const { settling, script, clock } = openSettling();
    script.probe = AWAY;
    await settling.refresh();
    script.probe = { ok: true };
    for (const [ms, facilitator] of [[4999, AWAY] as const, [1, script.probe] as const]) {
      await clock.advance(ms);
      await settling.refresh();
      expect(settling.probes()).toEqual({ facilitator });
    }
  });

  test('is probed, and the token tried, also where a settler’s own round fails, which is said', async () => {
    const { settling, script, done } = openSettling();
    script.refreshes = Promise.reject(new Error('no gas price'));
    await expect(settling.refresh()).rejects.toThrow('no gas price');
    expect(done).toEqual(['refreshes', 'probes']);
  });
});

test('a stop ends each settler, and waits for the rows that are under way', async () => {
  const { settling, script, settle, stored, done, pass } = openSettling();
  const late = Promise.withResolvers<void>();
  script.held = late.promise;
  void settle(await stored('a'));
  await pass(0);
  let isStopped = false;
  const stopped = settling.stop().then(() => {
    isStopped = true;
  });
  await pass(WAIT_MS);
  expect([done, isStopped]).toEqual([['stops'], false]);
  late.resolve();
  await stopped;
});
