import { describe, expect, test } from 'vitest';
import { createFairMinute, createFairStock } from '../../../../src/lib/limits/shares.ts';
import { createManualClock } from '../../../support/manual-clock.ts';

/** Takes one at a time, in turns, until none of these clients gets any more; returns how many each has. */
function takeAll(take: (client: string) => boolean, clients: readonly string[]): number[] {
  const counts = clients.map(() => 0);
  for (let went = true; went; ) {
    went = false;
    for (const [at, client] of clients.entries()) {
      if (!take(client)) continue;
      counts[at]! += 1;
      went = true;
    }
  }
  return counts;
}

const addresses = (count: number): string[] => Array.from({ length: count }, (_, at) => `192.0.2.${at}`);

describe('a stock that clients share', () => {
  test.each([
    { greedy: 1, each: 300 },
    { greedy: 2, each: 200 },
    { greedy: 19, each: 30 },
  ])('is left with as much for the next as each of $greedy greedy clients has', ({ greedy, each }) => {
    const stock = createFairStock(600);
    expect(takeAll(stock.take, addresses(greedy))).toEqual(Array(greedy).fill(each));
    expect(stock.free()).toBe(each);
    expect(stock.take('198.51.100.1', each)).toBe(true);
    expect(stock.free()).toBe(0);
  });

  test('refuses an amount that is more than is left, and takes nothing', () => {
    const stock = createFairStock(10);
    expect([stock.take('a', 11), stock.free(), stock.take('a', 10), stock.free()]).toEqual([false, 10, true, 0]);
  });

  test('leaves a reserve to those who may take it', () => {
    const stock = createFairStock(10);
    expect([stock.take('a', 1, 10), stock.take('a', 1, 9), stock.take('a', 4, 2)]).toEqual([false, true, true]);
    expect([stock.take('b', 4, 2), stock.take('b', 4, 1)]).toEqual([false, true]);
    expect(stock.free()).toBe(1);
  });

  test('counts all networks of one IPv6 site together', () => {
    const stock = createFairStock(60);
    const networks = Array.from({ length: 10 }, (_, at) => `2001:db8:1:${at.toString(16)}::/64`);
    const counts = takeAll(stock.take, networks);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(30);
    expect(stock.take('2001:db8:2:0::/64')).toBe(true);
  });

  test('is full again when everything is given back, and never holds more than was taken', () => {
    const stock = createFairStock(10);
    stock.take('2001:db8:1:0::/64', 4);
    stock.give('2001:db8:1:0::/64', 9);
    stock.give('192.0.2.1', 1);
    expect([stock.free(), stock.held('2001:db8:1:0::/64'), stock.held('2001:db8:1::/48')]).toEqual([10, 0, 0]);
  });
});

describe('a minute that clients share', () => {
  test('is full again when it ends, and returns the seconds until then', async () => {
    const clock = createManualClock(1_000_000);
    const minute = createFairMinute(4, clock);
    expect(takeAll((client) => minute.take(client) === 0, ['192.0.2.1'])).toEqual([2]);
    await clock.advance(59_500);
    expect([minute.take('192.0.2.1'), minute.take('192.0.2.2')]).toEqual([1, 0]);
    await clock.advance(500);
    expect(minute.take('192.0.2.1')).toBe(0);
  });
});

test('a stock whose total shrinks gives nothing more until what is held is within it', () => {
  let total = 10;
  const stock = createFairStock(() => total);
  expect(stock.take('a', 5)).toBe(true);
  total = 4;
  expect([stock.take('b'), stock.free()]).toEqual([false, 0]);
  stock.give('a', 3);
  expect([stock.take('b', 2), stock.free()]).toEqual([true, 0]);
});
