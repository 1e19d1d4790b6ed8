import { describe, expect, test } from 'vitest';
import { type Allowance, createAllowance } from '../../../../src/chain/rpc/providers.ts';
import { createManualClock, type ManualClock } from '../../../support/manual-clock.ts';

const START = 1_800_000_000_000;

function open(): { clock: ManualClock; allowance: Allowance; spend(times: number): void } {
  const clock = createManualClock(START);
  const allowance = createAllowance(clock);
  const spend = (times: number) => {
    for (let at = 0; at < times; at++) allowance.spend();
  };
  return { clock, allowance, spend };
}

/** An allowance that has learned this rate: `rate` requests were served in a second, and one more was refused. */
function limitedTo(rate: number) {
  const opened = open();
  opened.spend(rate + 1);
  opened.allowance.refused();
  expect(opened.allowance.rate()).toBe(rate);
  return opened;
}

test('a provider that has never refused anything has no limit, however many requests it gets', async () => {
  const { allowance, spend, clock } = open();
  spend(10_000);
  await clock.advance(60_000);
  expect([allowance.free(), allowance.burst(), allowance.rate()]).toEqual(Array(3).fill(Number.POSITIVE_INFINITY));
});

describe('the first refusal', () => {
  test('sets the rate to the requests of the second before it that were not refused', () => {
    const { allowance, spend } = open();
    spend(5);
    allowance.refused();
    expect([allowance.rate(), allowance.free(), allowance.burst()]).toEqual([4, 0, 2]);
  });

  test('counts the requests of the last second and no older ones', async () => {
    const { allowance, spend, clock } = open();
    spend(7);
    await clock.advance(1);
    spend(3);
    await clock.advance(999);
    allowance.refused();
    expect(allowance.rate()).toBe(2);
  });

  test('never sets a rate below one a second', () => {
    const { allowance } = open();
    allowance.spend();
    allowance.refused();
    expect([allowance.rate(), allowance.burst()]).toEqual([1, 1]);
    const other = open().allowance;
    other.refused();
    expect(other.rate()).toBe(1);
  });

  test('counts at most 200 requests of one second', () => {
    const { allowance, spend } = open();
    spend(201);
    allowance.refused();
    // The last hundred of them stay counted.
    expect(allowance.rate()).toBe(99);
    const fewer = open();
    fewer.spend(200);
    fewer.allowance.refused();
    expect(fewer.allowance.rate()).toBe(199);
  });
});

describe('a limited provider', () => {
  test('may be asked more as time passes, up to the requests of half a second', async () => {
    const { allowance, clock } = limitedTo(8);
    expect([allowance.free(), allowance.burst()]).toEqual([0, 4]);
    await clock.advance(125);
    expect(allowance.free()).toBe(1);
    await clock.advance(250);
    expect(allowance.free()).toBe(3);
    await clock.advance(1000);
    expect(allowance.free()).toBe(4);
  });

  test('with one request a second or less may be asked once a whole request is available', async () => {
    const { allowance, clock } = limitedTo(1);
    await clock.advance(999);
    expect(allowance.free()).toBeLessThan(1);
    await clock.advance(1);
    expect(allowance.free()).toBe(1);
    await clock.advance(5000);
    expect(allowance.free()).toBe(1);
  });

  test('loses one request for each that is sent, allowed or not', async () => {
    const { allowance, clock, spend } = limitedTo(8);
    await clock.advance(500);
    spend(3);
    expect(allowance.free()).toBe(1);
    spend(3);
    expect(allowance.free()).toBe(-2);
    await clock.advance(250);
    expect(allowance.free()).toBe(0);
  });

  test('gains nothing when the clock is set back', async () => {
    const moved = { now: START };
    const allowance = createAllowance({ nowMs: () => moved.now, sleep: async () => {} });
    for (let at = 0; at < 9; at++) allowance.spend();
    allowance.refused();
    moved.now -= 60_000;
    expect(allowance.free()).toBe(0);
    moved.now += 125;
    expect(allowance.free()).toBe(1);
  });
});

describe('more refusals', () => {
  test('within one second change the rate once, to what was served of them all', async () => {
    const { allowance, spend, clock } = open();
    spend(10);
    allowance.refused();
    allowance.refused();
    allowance.refused();
    expect(allowance.rate()).toBe(7);
    await clock.advance(999);
    spend(50);
    allowance.refused();
    // Within the second the rate neither falls nor rises.
    expect(allowance.rate()).toBe(7);
  });

  test('a second later lower the rate by a fifth', async () => {
    const { allowance, spend, clock } = limitedTo(10);
    await clock.advance(1000);
    spend(9);
    allowance.refused();
    expect(allowance.rate()).toBe(8);
    await clock.advance(1000);
    spend(7);
    allowance.refused();
    expect(allowance.rate()).toBeCloseTo(6.4);
  });

  test('never lower the rate below what was served in that second', async () => {
    const { allowance, spend, clock } = limitedTo(2);
    await clock.advance(1000);
    spend(3);
    allowance.refused();
    expect(allowance.rate()).toBe(2);
    await clock.advance(1000);
    spend(50);
    allowance.refused();
    expect(allowance.rate()).toBe(2);
    // All but one of the fifty were refused, so the rate had been too high.
    for (let more = 0; more < 48; more++) allowance.refused();
    expect(allowance.rate()).toBe(1.6);
  });

  test('empty the bucket', async () => {
    const { allowance, clock } = limitedTo(10);
    await clock.advance(1000);
    expect(allowance.free()).toBe(5);
    allowance.spend();
    allowance.refused();
    expect(allowance.free()).toBe(0);
  });

  test('that last for minutes leave one request in five seconds, which finds a provider that has recovered', async () => {
    const { allowance, clock, spend } = limitedTo(10);
    for (let second = 0; second < 60; second++) {
      await clock.advance(1000);
      spend(1);
      allowance.refused();
    }
    expect(allowance.rate()).toBe(0.2);
    await clock.advance(4999);
    expect(allowance.free()).toBeLessThan(1);
    await clock.advance(1);
    expect(allowance.free()).toBeCloseTo(1);
  });
});

describe('a time without refusals', () => {
  test('of two seconds raises the rate by a quarter, once for every two seconds', async () => {
    const { allowance, clock } = limitedTo(8);
    const rateAfter = async (ms: number) => {
      await clock.advance(ms);
      allowance.free();
      return allowance.rate();
    };
    expect(await rateAfter(1999)).toBe(8);
    expect(await rateAfter(1)).toBe(10);
    expect(await rateAfter(1999)).toBe(10);
    expect(await rateAfter(1)).toBe(12.5);
  });

  test('begins anew with a refusal', async () => {
    const { allowance, clock, spend } = limitedTo(10);
    await clock.advance(1500);
    spend(9);
    allowance.refused();
    expect(allowance.rate()).toBe(8);
    await clock.advance(1999);
    allowance.free();
    expect(allowance.rate()).toBe(8);
    await clock.advance(1);
    allowance.free();
    expect(allowance.rate()).toBe(10);
  });

  test('that is long enough ends the limit, and a later refusal begins a new one', async () => {
    const { allowance, clock, spend } = limitedTo(64);
    await clock.advance(2000);
    allowance.spend();
    expect(allowance.rate()).toBe(80);
    await clock.advance(2000);
    allowance.spend();
    // At most a hundred requests are counted.
    expect(allowance.rate()).toBe(100);
    await clock.advance(2000);
    expect([allowance.free(), allowance.rate(), allowance.burst()]).toEqual(Array(3).fill(Number.POSITIVE_INFINITY));
    spend(6);
    expect(allowance.free()).toBe(Number.POSITIVE_INFINITY);
    allowance.refused();
    expect([allowance.rate(), allowance.free()]).toEqual([5, 0]);
  });
});
