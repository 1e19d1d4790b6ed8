import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createReplyQuota, type ReplyQuota } from '../../../../../src/payment/lightning/kept-replies.ts';
import { createManualClock } from '../../../../support/manual-clock.ts';

const LIFE_MS = 420_000;
const unpaid = (client: string) => ({ client, isBuyer: false });
const buyer = (client: string) => ({ client, isBuyer: true });
const hashOf = (name: string) => createHash('sha256').update(name).digest();

function open(maxBytes: number, sharers = 1) {
  const clock = createManualClock(1_700_000_000_000);
  const quota = createReplyQuota(clock, maxBytes, () => sharers);
  return {
    clock,
    quota,
    /** So many processes keep replies in the store from the next count on. */
    share: (count: number) => {
      sharers = count;
    },
    /** Keeps a reply for an offer; false where it does not fit. */
    offer(asker: { client: string; isBuyer: boolean }, bytes: number, name = `${Math.random()}`): boolean {
      const held = taken(quota, asker, bytes);
      held?.keep(hashOf(name), clock.nowMs() + LIFE_MS);
      return held !== null;
    },
  };
}

function taken(quota: ReplyQuota, asker: { client: string; isBuyer: boolean }, bytes: number) {
  try {
    return quota.take(asker, bytes);
  } catch (error) {
    expect(error).toMatchObject({ status: 503, code: 'reply_store_full', retryAfterSeconds: 30, charged: false });
    return null;
  }
}

const isFull = (quota: ReplyQuota, asker = buyer('late')): boolean => {
  try {
    quota.check(asker);
    return false;
  } catch (error) {
    expect(error).toMatchObject({ status: 503, code: 'reply_store_full', retryAfterSeconds: 30, charged: false });
    return true;
  }
};

describe('replies of unpaid offers', () => {
  test('take up at most half of the reply store, while paid answers may fill all of it', () => {
    const { quota, offer } = open(1000);
    for (let at = 0; at < 100; at++) offer(buyer(`buyer ${at}`), 10);
    expect([offer(buyer('late'), 1), isFull(quota)]).toEqual([false, true]);
    quota.set({ all: 500, offered: 500 });
    expect(isFull(quota)).toBe(true);
    quota.answered(hashOf('of another process'), 500);
    quota.set({ all: 1000, offered: 0 });
    expect(isFull(quota)).toBe(true);
    // Paid for: never refused.
    quota.answered(hashOf('one more'), 10);
  });

  test('are refused when paid answers fill the rest of the store, to the byte', () => {
    const { quota, offer } = open(1000);
    quota.answered(hashOf('a'), 900);
    expect([offer(buyer('a'), 101), offer(buyer('a'), 100), isFull(quota)]).toEqual([false, true, true]);
    const { quota: other } = open(1000);
    other.set({ all: 999, offered: 0 });
    expect(isFull(other)).toBe(false);
    other.set({ all: 1000, offered: 0 });
    expect(isFull(other)).toBe(true);
  });

  test('of one client are refused once it would hold more bytes than are left', () => {
    const { quota, offer } = open(1000);
    expect([offer(unpaid('greedy'), 200), offer(unpaid('greedy'), 1), offer(unpaid('greedy'), 1)]).toEqual([
      true,
      false,
      false,
    ]);
    // Five hundred for offers, less a fifth for buyers: two hundred are left, and the next has them to the byte.
    expect([isFull(quota, unpaid('greedy')), isFull(quota, unpaid('other'))]).toEqual([true, false]);
    expect([offer(unpaid('other'), 201), offer(unpaid('other'), 200)]).toEqual([false, true]);
    expect(isFull(quota, unpaid('late'))).toBe(true);
  });

  test('of all addresses of one IPv6 site count as one client’s', () => {
    const { offer } = open(1000);
    expect(offer(unpaid('2001:db8:1:0::/64'), 150)).toBe(true);
    expect(offer(unpaid('2001:db8:1:1::/64'), 101)).toBe(false);
    expect(offer(unpaid('2001:db8:2:1::/64'), 101)).toBe(true);
  });

  test('of a client that has not paid take a 24th at most, so twenty such clients leave space for the next', () => {
    const mib = 1024 * 1024;
    // Half of it, less a fifth for buyers, is 48 MiB.
    const { offer, quota } = open(120 * mib);
    expect([offer(unpaid('a'), 2 * mib + 1), offer(unpaid('a'), 2 * mib), offer(unpaid('a'), 1)]).toEqual([
      false,
      true,
      false,
    ]);
    expect([isFull(quota, unpaid('a')), isFull(quota, unpaid('b'))]).toEqual([true, false]);
    expect(offer(unpaid('2001:db8:1:0::/64'), mib + 1)).toBe(true);
    expect([offer(unpaid('2001:db8:1:1::/64'), mib), offer(unpaid('2001:db8:1:1::/64'), mib - 1)]).toEqual([
      false,
      true,
    ]);
    for (let at = 0; at < 20; at++) expect(offer(unpaid(`client ${at}`), 2 * mib)).toBe(true);
    expect(offer(unpaid('late'), 2 * mib)).toBe(true);
    expect(offer(buyer('buyer'), 6 * mib)).toBe(true);
  });

  test('of a client that has not paid take a mebibyte at most in a small store', () => {
    const mib = 1024 * 1024;
    const { offer } = open(10 * mib);
    expect([offer(unpaid('a'), mib + 1), offer(unpaid('a'), mib), offer(unpaid('a'), 1)]).toEqual([false, true, false]);
    // Two processes: of each one’s part.
    const { offer: ofOne } = open(240 * mib, 2);
    expect([ofOne(unpaid('a'), 2 * mib + 1), ofOne(unpaid('a'), 2 * mib)]).toEqual([false, true]);
  });

  test('leave a fifth to buyers, and no buyer may hold more than is left of it', () => {
    const { quota, offer } = open(1000);
    for (let at = 0; at < 400; at++) offer(unpaid(`client ${at}`), 1);
    expect([isFull(quota, unpaid('late')), offer(unpaid('late'), 1), isFull(quota)]).toEqual([true, false, false]);
    expect([offer(buyer('a'), 101), offer(buyer('a'), 50), offer(buyer('a'), 1)]).toEqual([false, true, false]);
    expect(offer(buyer('b'), 50)).toBe(true);
  });

  test('can be checked for space without taking any', () => {
    const { quota, offer } = open(10);
    for (let at = 0; at < 100; at++) expect(isFull(quota, buyer('a'))).toBe(false);
    expect(offer(buyer('a'), 5)).toBe(true);
  });
});

describe('space for replies is free again', () => {
  test('when an invoice is forgotten, to the millisecond', async () => {
    const { clock, quota, offer } = open(1000);
    offer(buyer('a'), 200);
    await clock.advance(1000);
    offer(buyer('b'), 200);
    expect([offer(buyer('a'), 1), offer(buyer('c'), 101)]).toEqual([false, false]);
    await clock.advance(LIFE_MS - 1001);
    expect(offer(buyer('c'), 101)).toBe(false);
    await clock.advance(1);
    expect(offer(buyer('c'), 200)).toBe(true);
    expect(offer(buyer('b'), 1)).toBe(false);
    await clock.advance(1000);
    expect([isFull(quota, buyer('b')), offer(buyer('b'), 200)]).toEqual([false, true]);
  });

  test('when an offer is paid and answered, for its client and for all clients', () => {
    const { quota, offer } = open(1000);
    offer(buyer('a'), 250, 'first');
    expect(offer(buyer('a'), 100)).toBe(false);
    quota.answered(hashOf('first'), 300);
    expect(offer(buyer('a'), 250, 'second')).toBe(true);
    quota.answered(hashOf('second'), 300);
    // The answers have six hundred; the replies before them are gone.
    expect([offer(buyer('b'), 401), offer(buyer('b'), 400)]).toEqual([false, true]);
    expect(isFull(quota)).toBe(true);
  });

  test('only once for one offer, however often it is answered', () => {
    const { quota, offer } = open(1000);
    offer(buyer('a'), 250, 'first');
    offer(buyer('b'), 250, 'other');
    quota.answered(hashOf('first'), 10);
    quota.answered(hashOf('first'), 10);
    expect([offer(buyer('c'), 251), offer(buyer('c'), 250)]).toEqual([false, true]);
    const { quota: paid, offer: offerThere } = open(1000);
    offerThere(buyer('a'), 250, 'first');
    for (const bytes of [10, 10]) paid.answered(hashOf('first'), bytes);
    paid.answered(hashOf('x'), 600);
    expect([offerThere(buyer('b'), 381), offerThere(buyer('b'), 380)]).toEqual([false, true]);
  });

  test('when the reply got no invoice', () => {
    const { quota, offer } = open(1000);
    const held = taken(quota, buyer('a'), 500);
    expect(isFull(quota)).toBe(true);
    held?.release();
    expect(offer(buyer('b'), 500)).toBe(true);
    quota.answered(hashOf('x'), 500);
    expect(isFull(quota)).toBe(true);
  });

  test('and paid answers may use what was released', () => {
    const { quota, offer } = open(1000);
    taken(quota, buyer('a'), 500)?.release();
    quota.answered(hashOf('x'), 600);
    expect([offer(buyer('b'), 401), offer(buyer('b'), 400)]).toEqual([false, true]);
  });
});

describe('a count of the reply store', () => {
  test('at the start includes replies that no client of this process holds, until they are deleted', () => {
    const { quota, offer } = open(1000);
    quota.set({ all: 400, offered: 400 });
    expect([offer(unpaid('a'), 1), offer(buyer('a'), 101), offer(buyer('a'), 100)]).toEqual([false, false, true]);
    expect(isFull(quota)).toBe(true);
    quota.set({ all: 100, offered: 100 });
    expect(offer(unpaid('b'), 100)).toBe(true);
  });

  test('leaves each client what its counted replies left it', async () => {
    const { clock, quota, offer } = open(1000);
    offer(buyer('a'), 200);
    quota.set({ all: 200, offered: 200 });
    expect([offer(buyer('a'), 101), offer(buyer('b'), 300)]).toEqual([false, true]);
    quota.set({ all: 500, offered: 500 });
    expect(isFull(quota)).toBe(true);
    // Forgotten here a little before the store forgets them.
    await clock.advance(LIFE_MS);
    quota.set({ all: 500, offered: 500 });
    expect(isFull(quota)).toBe(true);
    quota.set({ all: 0, offered: 0 });
    expect(offer(buyer('c'), 500)).toBe(true);
  });

  test('leaves space for replies that are being stored', () => {
    const { quota, offer } = open(1000);
    const held = taken(quota, buyer('a'), 300);
    quota.set({ all: 600, offered: 0 });
    expect([offer(buyer('b'), 101), offer(buyer('b'), 100)]).toEqual([false, true]);
    held?.keep(hashOf('a'), 0);
  });

  test('above the limit leaves no space, and gives none back later', () => {
    const { quota, offer } = open(1000);
    quota.set({ all: 1500, offered: 1500 });
    expect(isFull(quota)).toBe(true);
    quota.set({ all: 900, offered: 900 });
    expect(isFull(quota)).toBe(true);
    quota.set({ all: 0, offered: 0 });
    expect([offer(buyer('a'), 501), offer(buyer('a'), 500)]).toEqual([false, true]);
  });

  test('that misses a reply does not let offers have more than half', () => {
    const { quota, offer } = open(1000);
    offer(buyer('a'), 250);
    quota.set({ all: 0, offered: 0 });
    expect([offer(buyer('b'), 251), offer(buyer('b'), 250), isFull(quota)]).toEqual([false, true, true]);
  });
});

test('a refusal says that the reply store is full and that the buyer may try again later', () => {
  const { quota } = open(1);
  expect(() => quota.check(buyer('a'))).toThrow('There is no space to keep another reply; try again later.');
});

test('two processes may each use half of the store before the first count, for answers too', () => {
  const { quota, offer } = open(2000, 2);
  quota.answered(hashOf('a'), 800);
  expect([offer(buyer('a'), 201), offer(buyer('a'), 200)]).toEqual([false, true]);
});

test('two processes may each use half of what the last count left', () => {
  const { quota, offer } = open(2000, 2);
  // Half of the store is for offers, half of that for this process, less a fifth for buyers.
  expect([offer(unpaid('a'), 401), offer(unpaid('a'), 400), isFull(quota, unpaid('b'))]).toEqual([false, true, true]);
  expect([offer(buyer('c'), 101), offer(buyer('c'), 100), isFull(quota)]).toEqual([false, true, true]);
  quota.set({ all: 700, offered: 700 });
  expect([offer(buyer('d'), 151), offer(buyer('d'), 150), isFull(quota)]).toEqual([false, true, true]);
  quota.set({ all: 1900, offered: 650 });
  expect([offer(buyer('e'), 51), offer(buyer('e'), 50)]).toEqual([false, true]);
});

test('an instance that joins or leaves changes the shares at the next count', () => {
  const { quota, offer, share } = open(2000);
  share(4);
  quota.set({ all: 0, offered: 0 });
  // A quarter of the half for offers, less a fifth of that for buyers.
  expect([offer(unpaid('a'), 201), offer(unpaid('a'), 200), isFull(quota, unpaid('b'))]).toEqual([false, true, true]);
  share(1);
  quota.set({ all: 200, offered: 200 });
  expect([offer(unpaid('c'), 601), offer(unpaid('c'), 600), isFull(quota, unpaid('d'))]).toEqual([false, true, true]);
});
