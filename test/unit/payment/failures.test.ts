import { describe, expect, test } from 'vitest';
import { clientKey } from '../../../src/lib/limits/count.ts';
import { createFailures } from '../../../src/payment/limits.ts';
import { createManualClock } from '../../support/manual-clock.ts';

const DAY_MS = 86_400_000;
const LIMITS = { payer: 3, client: 5, clientSettlements: 2 };
const [CLIENT, OTHER] = ['192.0.2.1', '192.0.2.2'];

function open(limits = LIMITS) {
  const clock = createManualClock(1_800_000_000_000);
  const failures = createFailures(limits, clock);
  const times = (count: number, note: () => void) => {
    for (let at = 0; at < count; at++) note();
  };
  return { clock, failures, times };
}

/** Networks of one IPv6 site, and of the next. */
const network = (number: number) => clientKey(`2001:db8:1:${number.toString(16)}::1`);
const elsewhere = clientKey('2001:db8:2:1::1');

describe('a payer', () => {
  test('must wait once its failures in a minute reach the limit, from any client, and another payer need not wait', () => {
    const { failures, times } = open();
    times(2, () => failures.note('payer', CLIENT));
    expect(failures.refusal('payer', CLIENT)).toBeNull();
    failures.note('payer', OTHER);
    expect(failures.refusal('payer', '192.0.2.3')).toEqual({
      code: 'payer_failures',
      retryAfterSeconds: 60,
      detail: 'too many of this payer’s calls failed uncharged; wait a little',
    });
    expect(failures.refusal('another', CLIENT)).toBeNull();
  });

  test('may call again when the minute that began with its first failure is over', async () => {
    const { failures, times, clock } = open();
    failures.note('payer', CLIENT);
    await clock.advance(30_000);
    times(2, () => failures.note('payer', CLIENT));
    expect(failures.refusal('payer', CLIENT)?.retryAfterSeconds).toBe(30);
    await clock.advance(29_001);
    expect(failures.refusal('payer', CLIENT)?.retryAfterSeconds).toBe(1);
    await clock.advance(999);
    expect(failures.refusal('payer', CLIENT)).toBeNull();
    // What failed in the old window does not count in the new one.
    failures.note('payer', CLIENT);
    expect(failures.refusal('payer', CLIENT)).toBeNull();
    times(2, () => failures.note('payer', CLIENT));
    expect(failures.refusal('payer', CLIENT)?.retryAfterSeconds).toBe(60);
  });

  test('does not get a failure for a payment that it did not sign, because any client can name any payer', () => {
    const { failures, times } = open();
    times(100, () => failures.noteUnproven(OTHER));
    expect(failures.refusal('payer', CLIENT)).toBeNull();
  });
});

describe('a client', () => {
  test('counts as failed for a minute, whether or not the payer’s signature was proven', async () => {
    const { failures, clock } = open();
    expect(failures.hasFailed(CLIENT)).toBe(false);
    failures.note('payer', CLIENT);
    failures.noteUnproven(OTHER);
    expect([failures.hasFailed(CLIENT), failures.hasFailed(OTHER)]).toEqual([true, true]);
    await clock.advance(60_000);
    expect([failures.hasFailed(CLIENT), failures.hasFailed(OTHER)]).toEqual([false, false]);
  });

  test('counts as failed when another network of its IPv6 /48 has failed, and not when one of another /48 has', () => {
    const { failures } = open();
    failures.noteUnproven(network(1));
    expect([failures.hasFailed(network(2)), failures.hasFailed(elsewhere)]).toEqual([true, false]);
  });

  test('must wait once its failures in a minute reach the limit, whatever payers it names, and another client need not wait', () => {
    const { failures, times } = open();
    let payer = 0;
    times(3, () => failures.note(`payer ${payer++}`, CLIENT));
    failures.noteUnproven(CLIENT);
    expect(failures.refusal('new', CLIENT)).toBeNull();
    failures.noteUnproven(CLIENT);
    expect(failures.refusal('new', CLIENT)).toEqual({
      code: 'client_failures',
      retryAfterSeconds: 60,
      detail: 'too many of this client’s calls failed uncharged; wait a little',
    });
    expect(failures.refusal('new', OTHER)).toBeNull();
  });

  test('gets the payer’s code when both the payer and the client must wait', () => {
    const { failures, times } = open();
    times(5, () => failures.note('payer', CLIENT));
    expect(failures.refusal('payer', CLIENT)?.code).toBe('payer_failures');
    expect(failures.refusal('another', CLIENT)?.code).toBe('client_failures');
  });

  test('may call again a minute after its first failure', async () => {
    const { failures, times, clock } = open();
    times(5, () => failures.noteUnproven(CLIENT));
    await clock.advance(59_999);
    expect(failures.refusal('payer', CLIENT)?.retryAfterSeconds).toBe(1);
    await clock.advance(1);
    expect(failures.refusal('payer', CLIENT)).toBeNull();
  });
});

describe('an IPv6 site', () => {
  test('may fail as often as four clients, from any of its networks', () => {
    const { failures } = open();
    for (let at = 0; at < 19; at++) failures.noteUnproven(network(at));
    expect(failures.refusal('payer', network(100))).toBeNull();
    failures.noteUnproven(network(19));
    expect(failures.refusal('payer', network(100))).toMatchObject({ code: 'client_failures', retryAfterSeconds: 60 });
    expect(failures.refusal('payer', elsewhere)).toBeNull();
    expect(failures.refusal('payer', CLIENT)).toBeNull();
  });

  test('blocks only the network that failed, until the site’s limit is reached', () => {
    const { failures, times } = open();
    times(5, () => failures.noteUnproven(network(1)));
    expect(failures.refusal('payer', network(1))?.code).toBe('client_failures');
    expect(failures.refusal('payer', network(2))).toBeNull();
  });

  test('makes its networks wait for whichever of the two limits ends later', async () => {
    const { failures, times, clock } = open();
    for (let at = 0; at < 15; at++) failures.noteUnproven(network(10 + at));
    await clock.advance(20_000);
    times(5, () => failures.noteUnproven(network(1)));
    // The site's minute ends in forty seconds, the network's own in sixty.
    expect(failures.refusal('payer', network(1))?.retryAfterSeconds).toBe(60);
    expect(failures.refusal('payer', network(2))?.retryAfterSeconds).toBe(40);
  });
});

describe('settlements that moved nothing', () => {
  test('make new payers of that client wait until a day after the first of them', async () => {
    const { failures, clock } = open();
    failures.beginSettlement('payer', CLIENT)(true);
    expect(failures.newPayersAfterSeconds(CLIENT)).toBe(0);
    await clock.advance(DAY_MS / 2);
    failures.beginSettlement('payer', CLIENT)(true);
    expect(failures.newPayersAfterSeconds(CLIENT)).toBe(43_200);
    expect(failures.newPayersAfterSeconds(OTHER)).toBe(0);
    await clock.advance(DAY_MS / 2 - 1);
    expect(failures.newPayersAfterSeconds(CLIENT)).toBe(1);
    await clock.advance(1);
    expect(failures.newPayersAfterSeconds(CLIENT)).toBe(0);
  });

  test('are counted apart from the failures of a minute', () => {
    const { failures, times } = open();
    times(10, () => failures.beginSettlement('payer', CLIENT)(true));
    expect(failures.refusal('another payer', CLIENT)).toBeNull();
    times(10, () => failures.note('payer', OTHER));
    expect(failures.newPayersAfterSeconds(OTHER)).toBe(0);
  });

  test('make that payer wait as well, from any client', async () => {
    const { failures, clock } = open();
    for (const client of [CLIENT, OTHER]) failures.beginSettlement('payer', client)(true);
    expect(failures.refusal('payer', 'a third client')).toMatchObject({
      code: 'payer_failures',
      retryAfterSeconds: 86_400,
    });
    expect(failures.refusal('another payer', CLIENT)).toBeNull();
    await clock.advance(DAY_MS);
    expect(failures.refusal('payer', CLIENT)).toBeNull();
  });

  test('do not make a payer wait for a payment that may have paid: only the failures of its minute do', () => {
    const { failures, times } = open();
    for (const client of [CLIENT, OTHER]) failures.beginSettlement('payer', client)(true);
    expect(failures.refusalOfMinute('payer', CLIENT)).toBeNull();
    times(3, () => failures.note('payer', CLIENT));
    expect(failures.refusalOfMinute('payer', OTHER)).toMatchObject({ code: 'payer_failures', retryAfterSeconds: 60 });
  });

  test('count while they are under way once one has failed, so that no burst passes the limit', () => {
    const { failures } = open();
    const ends = [1, 2, 3].map((at) => failures.beginSettlement(`payer ${at}`, CLIENT));
    expect(failures.newPayersAfterSeconds(CLIENT)).toBe(0);
    ends[0]?.(true);
    expect(failures.newPayersAfterSeconds(CLIENT)).toBe(1);
    ends[1]?.(false);
    expect(failures.newPayersAfterSeconds(CLIENT)).toBe(1);
    ends[2]?.(false);
    expect(failures.newPayersAfterSeconds(CLIENT)).toBe(0);
    expect(failures.newPayersAfterSeconds(OTHER)).toBe(0);
  });

  test('are counted for the IPv6 site as well, which may have as many as four clients', () => {
    const { failures } = open();
    for (let at = 0; at < 7; at++) failures.beginSettlement('payer', network(at))(true);
    expect(failures.newPayersAfterSeconds(network(100))).toBe(0);
    failures.beginSettlement('payer', network(7))(true);
    expect(failures.newPayersAfterSeconds(network(100))).toBe(86_400);
    expect(failures.newPayersAfterSeconds(elsewhere)).toBe(0);
  });
});

test('each limit is off when it is zero', () => {
  const { failures, times } = open({ payer: 0, client: 0, clientSettlements: 0 });
  times(1000, () => failures.note('payer', network(1)));
  times(1000, () => failures.beginSettlement('payer', network(1))(true));
  failures.beginSettlement('payer', network(1));
  expect([failures.refusal('payer', network(1)), failures.newPayersAfterSeconds(network(1))]).toEqual([null, 0]);
  const client = open({ ...LIMITS, payer: 0 });
  client.times(5, () => client.failures.note('payer', CLIENT));
  expect(client.failures.refusal('payer', CLIENT)?.code).toBe('client_failures');
});

test('a bounded number of payers and clients is remembered, and the oldest window is forgotten first', () => {
  const { failures, times } = open();
  times(3, () => failures.note('first', CLIENT));
  times(3, () => failures.note('second', CLIENT));
  for (let payer = 0; payer < 9998; payer++) failures.note(`made up ${payer}`, `client ${payer}`);
  expect(failures.refusal('first', OTHER)?.code).toBe('payer_failures');
  failures.note('one too many', OTHER);
  expect(failures.refusal('first', OTHER)).toBeNull();
  expect(failures.refusal('second', OTHER)?.code).toBe('payer_failures');
});

test('a payer that fails again after its minute has a new window, and older windows are forgotten before it', async () => {
  const { failures, times, clock } = open();
  failures.note('again', CLIENT);
  failures.note('older', CLIENT);
  await clock.advance(30_000);
  times(3, () => failures.note('older', OTHER));
  await clock.advance(30_000);
  times(3, () => failures.note('again', OTHER));
  for (let payer = 0; payer < 9999; payer++) failures.note(`made up ${payer}`, `client ${payer}`);
  expect(failures.refusal('again', '192.0.2.3')?.code).toBe('payer_failures');
});
