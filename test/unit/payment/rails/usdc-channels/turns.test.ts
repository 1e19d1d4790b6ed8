import { beforeEach, describe, expect, test } from 'vitest';
import { createTurns, type Turns } from '../../../../../src/payment/channels/turns.ts';
import { createManualClock, type ManualClock } from '../../../../support/manual-clock.ts';

const STAYS = new AbortController().signal;

let clock: ManualClock;
let turns: Turns;
/** What the requests did, in order. */
let seen: string[];
/** The channel's charges. */
let charged: bigint;

beforeEach(() => {
  clock = createManualClock(1_800_000_000_000);
  turns = createTurns(clock);
  [seen, charged] = [[], 0n];
});

/** A request of one unit whose voucher was signed on top of these charges. It buys when that fits, and is corrected when it does not. */
function request(name: string, chargedBefore: bigint, signal = STAYS, work: () => Promise<void> = async () => {}) {
  return turns.take('channel', { chargedBefore, request: name.replace(' again', ''), charged }, signal, async () => {
    await work();
    const fits = chargedBefore === charged;
    seen.push(`${name} ${fits ? 'buys' : `is told ${charged}`}`);
    if (fits) charged += 1n;
    return { value: fits, charged, isCorrected: !fits };
  });
}

/** A stock client: it signs once more when it is told the charges, and gives up when that voucher is stale too. */
async function buyer(name: string): Promise<boolean> {
  if (await request(name, 0n)) return true;
  const known = charged;
  await clock.sleep(20);
  return (await request(`${name} again`, known)) === true;
}

describe('the requests of one channel', () => {
  test('run one after the other', async () => {
    const first = Promise.withResolvers<void>();
    let isFirstOver = false;
    const run = async () => {
      await first.promise;
      isFirstOver = true;
    };
    const both = [request('a', 0n, STAYS, run), request('b', 1n, STAYS, async () => expect(isFirstOver).toBe(true))];
    await clock.advance(0);
    expect(seen).toEqual([]);
    first.resolve();
    expect(await Promise.all(both)).toEqual([true, true]);
  });

  test('of ten parallel calls with one voucher all buy, each after one correction at the most', async () => {
    const all = Promise.all(Array.from({ length: 10 }, (_, at) => buyer(`${at}`)));
    for (let step = 0; step < 60; step++) await clock.advance(20);
    expect(await all).toEqual(Array.from({ length: 10 }, () => true));
    expect(charged).toBe(10n);
  });

  test('wait no longer than half a second for a client that was corrected and stays away', async () => {
    await request('a', 0n);
    expect(await request('stale', 0n)).toBe(false);
    const next = request('next', 0n);
    await clock.advance(499);
    expect(seen).toEqual(['a buys', 'stale is told 1']);
    await clock.advance(1);
    expect(await next).toBe(false);
  });

  test('leave the turn after a correction to the corrected request, before stale and before fitting ones', async () => {
    await request('a', 0n);
    await request('stale', 0n);
    const waiting = [request('also stale', 0n), request('fits', 1n)];
    expect(await request('stale again', 1n)).toBe(true);
    expect(await waiting[0]).toBe(false);
    await clock.advance(500);
    expect(await waiting[1]).toBe(false);
    expect(seen).toEqual(['a buys', 'stale is told 1', 'stale again buys', 'also stale is told 2', 'fits is told 2']);
  });

  test('let a fitting voucher overtake stale ones that wait', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const first = request('a', 0n, STAYS, () => promise);
    const [stale, fitting] = [request('stale', 0n), request('fits', 1n)];
    resolve();
    expect(await first).toBe(true);
    expect(await fitting).toBe(true);
    expect(await stale).toBe(false);
    expect(seen).toEqual(['a buys', 'fits buys', 'stale is told 2']);
  });

  test('are refused when 32 wait already, and after 30 seconds', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const first = request('first', 0n, STAYS, () => promise);
    const waiting = Array.from({ length: 32 }, (_, at) => request(`${at}`, 1n));
    expect(await request('one more', 1n)).toBeNull();
    await clock.advance(30_000);
    expect(await Promise.all(waiting)).toEqual(Array.from({ length: 32 }, () => null));
    resolve();
    expect(await first).toBe(true);
  });

  test('with a fitting voucher are not refused for the stale ones before them', async () => {
    await request('a', 0n);
    const { promise, resolve } = Promise.withResolvers<void>();
    const second = request('b', 1n, STAYS, () => promise);
    const stale = Array.from({ length: 32 }, (_, at) => request(`${at}`, 0n));
    expect(await request('also stale', 0n)).toBeNull();
    const fitting = request('c', 1n);
    resolve();
    expect(await second).toBe(true);
    for (let step = 0; step < 60; step++) await clock.advance(500);
    expect(await fitting).toBe(false);
    expect(await Promise.all(stale)).not.toContain(true);
  });

  test('lose their place when their connection closes', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const first = request('first', 0n, STAYS, () => promise);
    const leaving = new AbortController();
    const second = request('second', 1n, leaving.signal);
    leaving.abort();
    expect(await second).toBeNull();
    resolve();
    await first;
    expect(seen).toEqual(['first buys']);
  });

  test('go on after one of them failed', async () => {
    const failed = request('a', 0n, STAYS, () => Promise.reject(new Error('the source is away')));
    const next = request('b', 0n);
    await expect(failed).rejects.toThrow('the source is away');
    expect(await next).toBe(true);
  });
});

describe('a channel that waits for a corrected request', () => {
  /** A channel that is charged 1 and has just corrected the request "stale". */
  async function corrected(): Promise<void> {
    await request('a', 0n);
    expect(await request('stale', 0n)).toBe(false);
  }

  test('sets one timer for all that wait, and none is left afterwards', async () => {
    await corrected();
    const waiting = [request('fits', 1n), request('also fits', 1n)];
    expect(clock.pendingSleeps()).toEqual([500, 30_000, 30_000]);
    await clock.advance(500);
    expect(await Promise.all(waiting)).toEqual([true, false]);
    // The second one was corrected: the channel waits for it.
    expect(clock.pendingSleeps()).toEqual([500]);
    await clock.advance(500);
    expect(clock.pendingSleeps()).toEqual([]);
  });

  test('takes the corrected request at once, before one that waits, and drops the timer', async () => {
    await corrected();
    const other = request('fits', 1n);
    expect(await request('stale again', 1n)).toBe(true);
    await clock.advance(0);
    expect(await other).toBe(false);
    expect(clock.pendingSleeps()).toEqual([500]);
  });

  test('does not wait where the corrected request waits already', async () => {
    await request('a', 0n);
    const { promise, resolve } = Promise.withResolvers<void>();
    const stale = request('stale', 0n, STAYS, () => promise);
    const again = request('stale again', 1n);
    resolve();
    expect([await stale, await again]).toEqual([false, true]);
    expect(clock.pendingSleeps()).toEqual([]);
  });

  test('begins no second turn when its timer fires as another request begins', async () => {
    const sleep = clock.sleep;
    const timer = Promise.withResolvers<void>();
    clock.sleep = () => timer.promise;
    await corrected();
    clock.sleep = sleep;
    const other = request('fits', 1n);
    const { promise, resolve } = Promise.withResolvers<void>();
    await clock.advance(500);
    timer.resolve();
    const again = request('stale again', 1n, STAYS, () => promise);
    await new Promise((done) => setImmediate(done));
    expect(seen).toEqual(['a buys', 'stale is told 1']);
    resolve();
    expect([await again, await other]).toEqual([true, false]);
  });

  test('lets a request without a wait go once the time is over', async () => {
    await corrected();
    await clock.advance(500);
    expect(await request('b', 1n)).toBe(true);
    expect(clock.pendingSleeps()).toEqual([]);
  });

  test('does not run a request that has left, and wakes the next one', async () => {
    await corrected();
    const leaving = new AbortController();
    const left = request('left', 1n, leaving.signal);
    const stays = request('stays', 1n);
    leaving.abort();
    expect(await left).toBeNull();
    await clock.advance(500);
    expect(await stays).toBe(true);
    expect(seen).not.toContain('left buys');
  });
});

describe('a request that has its turn', () => {
  test('keeps it when its connection closes, and the next one waits for its end', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const [first, leaving] = [Promise.withResolvers<void>(), new AbortController()];
    const running = request('first', 0n, STAYS, () => first.promise);
    const second = request('second', 1n, leaving.signal, () => promise);
    first.resolve();
    await running;
    leaving.abort();
    const third = request('third', 2n);
    await clock.advance(0);
    expect(seen).toEqual(['first buys']);
    resolve();
    expect([await second, await third]).toEqual([true, true]);
    expect(seen).toEqual(['first buys', 'second buys', 'third buys']);
  });

  test('after a failure lets any request go, because the charges are not known', async () => {
    const failing = request('a', 0n, STAYS, () => Promise.reject(new Error('away')));
    const [other, waiting] = [request('b', 7n), request('c', 0n)];
    await expect(failing).rejects.toThrow('away');
    expect(await other).toBe(false);
    await clock.advance(500);
    expect(await waiting).toBe(true);
    expect(seen).toEqual(['b is told 0', 'c buys']);
  });

  test('learns the charges anew, once nobody has waited for the channel', async () => {
    await request('a', 0n);
    // Another process sells meanwhile.
    charged = 5n;
    const { promise, resolve } = Promise.withResolvers<void>();
    const first = request('first', 5n, STAYS, () => promise);
    const stale = Array.from({ length: 32 }, (_, at) => request(`${at}`, 0n));
    const fitting = request('also first', 5n);
    resolve();
    expect(await first).toBe(true);
    for (let step = 0; step < 60; step++) await clock.advance(500);
    expect(await fitting).toBe(false);
    expect(await Promise.all(stale)).not.toContain(true);
  });

  test('does not hold up another channel', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const first = request('a', 0n, STAYS, () => promise);
    const elsewhere = turns.take('other', { chargedBefore: 0n, request: 'x', charged: 0n }, STAYS, async () => ({
      value: 'sold',
      charged: 1n,
      isCorrected: false,
    }));
    expect(await elsewhere).toBe('sold');
    resolve();
    await first;
  });
});
