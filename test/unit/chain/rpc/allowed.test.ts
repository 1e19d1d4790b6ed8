import { describe, expect, test } from 'vitest';
import { ranked } from '../../../../src/chain/rpc/client.ts';
import { chainBusy, createRankQueue } from '../../../../src/chain/rpc/failover.ts';
import { type Allowance, createAllowance, type PooledProvider } from '../../../../src/chain/rpc/providers.ts';
import { RANKS, type Rank, RESERVE, WAIT_MS } from '../../../../src/chain/rpc/wire.ts';
import { Unavailable } from '../../../../src/errors.ts';
import { aloneAgreed } from '../../../support/chain/alone-agreed.ts';
import { createManualClock, type ManualClock } from '../../../support/manual-clock.ts';

/** An allowance of this rate, empty for now; without one, unlimited. */
function allowanceOf(clock: ManualClock, rate?: number): Allowance {
  const allowance = createAllowance(clock);
  if (rate === undefined) return allowance;
  for (let at = 0; at <= rate; at++) allowance.spend();
  allowance.refused();
  return allowance;
}

/** Providers of these rates, and which ranks may send a request now. */
function open(...rates: (number | undefined)[]) {
  const clock = createManualClock(1_800_000_000_000);
  const allowances = rates.map((rate) => allowanceOf(clock, rate));
  // Only the allowance of a provider is used here.
  const pool = { inOrder: () => allowances.map((allowance) => ({ allowance }) as PooledProvider) };
  const { untilAllowed } = createRankQueue(pool, clock);
  const isAllowed = (rank: Rank) => untilAllowed(rank, 0);
  const allowed = async () => {
    const each = await Promise.all(RANKS.map(isAllowed));
    return RANKS.filter((_, at) => each[at]);
  };
  return { clock, allowances, untilAllowed, isAllowed, allowed };
}

test('a less important rank leaves no smaller reserve, and `admit` and `free` do not wait', () => {
  expect(RANKS.map((rank) => RESERVE[rank])).toEqual([0, 0.1, 0.2, 0.35, 0.45, 0.5]);
  expect(RANKS.map((rank) => WAIT_MS[rank])).toEqual([3000, 2000, 2000, 2000, 0, 0]);
});

describe('the ranks that may send a request', () => {
  test('are all ranks when no provider has a limit, when one of them has none, and when there is no provider', async () => {
    for (const rates of [[undefined], [undefined, 4], [4, undefined], []])
      expect(await open(...rates).allowed(), JSON.stringify(rates)).toEqual(RANKS);
  });

  // Twenty a second: at most ten at once. Each rank leaves a share of nine of them to the ranks before it.
  test.each<[number, number]>([
    [0, 0],
    [49, 0],
    [50, 1],
    [94, 1],
    [96, 2],
    [139, 2],
    [141, 3],
    [207, 3],
    [208, 4],
    [252, 4],
    [253, 5],
    [274, 5],
    [275, 6],
    [500, 6],
  ])('after %i ms at twenty a second are the first %i ranks', async (ms, count) => {
    const { clock, allowed } = open(20);
    await clock.advance(ms);
    expect(await allowed()).toEqual(RANKS.slice(0, count));
  });

  test('are all ranks when the bucket is full, also when it holds one request', async () => {
    const { clock, allowances, allowed } = open(1);
    await clock.advance(999);
    expect(await allowed()).toEqual([]);
    await clock.advance(1);
    expect(await allowed()).toEqual(RANKS);
    allowances[0]?.spend();
    expect(await allowed()).toEqual([]);
  });

  test('include the read of unverified payers when unpaid work has used up all that it may use', async () => {
    const { clock, allowances, isAllowed } = open(20);
    await clock.advance(500);
    let unpaid = 0;
    for (; await isAllowed('admit'); unpaid++) allowances[0]?.spend();
    // Ten requests at once, of which unpaid work leaves five.
    expect(unpaid).toBe(5);
    expect(await isAllowed('offer')).toBe(true);
  });

  test('depend on all providers together, but one of them must have a whole request left', async () => {
    // Two a second each: a bucket holds one.
    const two = open(2, 2);
    await two.clock.advance(400);
    expect(await two.allowed()).toEqual([]);
    await two.clock.advance(100);
    expect(await two.allowed()).toEqual(RANKS);
    two.allowances[0]?.spend();
    // One of two requests is left: only a settlement may use it.
    expect(await two.allowed()).toEqual(['settle']);
  });

  test('are not reduced by a provider that was asked for more than its allowance', async () => {
    const { clock, allowances, allowed } = open(20, 2);
    await clock.advance(500);
    for (let at = 0; at < 6; at++) allowances[1]?.spend();
    // The other provider is five requests below zero, which does not reduce these ten.
    expect(await allowed()).toEqual(RANKS);
  });
});

describe('waiting for an allowance', () => {
  test('ends as soon as there is one; it is checked every 25 ms', async () => {
    const { clock, untilAllowed } = open(4);
    let end: unknown = 'waiting';
    void untilAllowed('settle', 500).then((isAllowed) => {
      end = isAllowed;
    });
    await clock.advance(249);
    expect(end).toBe('waiting');
    await clock.advance(26);
    expect(end).toBe(true);
  });

  test('ends without one when the wait is over, to the millisecond', async () => {
    const { clock, untilAllowed } = open(1);
    let end: unknown = 'waiting';
    void untilAllowed('settle', 510).then((isAllowed) => {
      end = isAllowed;
    });
    await clock.advance(509);
    expect(end).toBe('waiting');
    await clock.advance(1);
    expect(end).toBe(false);
  });

  test('ends with the signal’s reason', async () => {
    const { clock, untilAllowed } = open(1);
    const leaver = new AbortController();
    const waiting = untilAllowed('sale', Number.POSITIVE_INFINITY, leaver.signal);
    await clock.advance(30);
    leaver.abort(new Error('the buyer left'));
    await expect(waiting).rejects.toThrow('the buyer left');
  });
});

test('a chain that is busy is 503 with a code and a second’s wait', () => {
  const busy = chainBusy();
  expect(busy).toBeInstanceOf(Unavailable);
  expect(busy).toMatchObject({ status: 503, code: 'chain_busy', retryAfterSeconds: 1, charged: false });
});

test('a ranked chain gives its rank to each call that names none, and keeps the other options', async () => {
  const asked: unknown[] = [];
  const signal = new AbortController().signal;
  const chain = {
    chainId: 1,
    publicUrl: '',
    everywhere: async () => {},
    ready: async () => {},
    requestsPerSecond: () => 7,
    agreed: aloneAgreed(async () => 1),
    each: async () => [],
    request: async <T>(...given: unknown[]): Promise<T> => asked.push(given) as T,
    batch: async (...given: unknown[]) => {
      asked.push(given);
      return [];
    },
  };
  const low = ranked(chain, 'free');
  await low.request('a', [1], { signal });
  await low.batch([{ method: 'b', params: [] }], { rank: 'settle' });
  await low.request('c', []);
  expect(asked).toEqual([
    ['a', [1], { signal, rank: 'free' }],
    [[{ method: 'b', params: [] }], { rank: 'settle' }],
    ['c', [], { rank: 'free' }],
  ]);
  expect([low.chainId, low.requestsPerSecond()]).toEqual([1, 7]);
});

describe('requests that wait', () => {
  /** Notes who may go, and spends what that costs. */
  function startLine() {
    const { clock, allowances, untilAllowed, isAllowed } = open(2, 2, 2, 2);
    const went: string[] = [];
    const stop = new AbortController();
    const wait = async (name: string, rank: Rank, waitMs = 60_000): Promise<void> => {
      const mayGo = await untilAllowed(rank, waitMs, stop.signal).catch(() => false);
      if (!mayGo) return;
      allowances.find((allowance) => allowance.free() >= 1)?.spend();
      went.push(name);
    };
    return { clock, went, wait, isAllowed, stop };
  }

  test('go in the order of their ranks, also where all of them may go at the moment when a bucket is full', async () => {
    const { clock, went, wait } = startLine();
    for (const rank of [...RANKS].reverse()) void wait(rank, rank);
    await clock.advance(5000);
    expect(went).toEqual(RANKS);
  });

  test('of one rank go in the order in which they came', async () => {
    const { clock, went, wait } = startLine();
    for (const name of ['first', 'second', 'third']) {
      void wait(name, 'sale');
      await clock.advance(7);
    }
    await clock.advance(5000);
    expect(went).toEqual(['first', 'second', 'third']);
  });

  test('let a more important one pass that comes later', async () => {
    const { clock, went, wait } = startLine();
    void wait('sale', 'sale');
    await clock.advance(10);
    void wait('settlement', 'settle');
    await clock.advance(5000);
    expect(went).toEqual(['settlement', 'sale']);
  });

  test('are not passed by a less important request that does not wait', async () => {
    const { clock, went, wait, isAllowed } = startLine();
    const sales = Array.from({ length: 6 }, (_, at) => `sale ${at}`);
    for (const sale of sales) void wait(sale, 'sale');
    for (let ms = 0; went.length < sales.length && ms < 10_000; ms++) {
      expect(await isAllowed('admit'), `after ${ms} ms`).toBe(false);
      await clock.advance(1);
    }
    expect(went).toEqual(sales);
  });

  test('hold up no other request once they have gone, given up, or left', async () => {
    const { clock, wait, isAllowed, stop } = startLine();
    void wait('gives up', 'settle', 30);
    void wait('leaves', 'sale');
    await clock.advance(30);
    stop.abort();
    await clock.advance(10_000);
    expect(await isAllowed('free')).toBe(true);
  });
});
