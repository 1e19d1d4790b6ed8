import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createReplyRoom, type ReplyRoom } from '../../../../../src/payment/rails/lightning/reply-room.ts';
import { createManualClock } from '../../../../support/manual-clock.ts';

const LIFE_MS = 420_000;
const stranger = (client: string) => ({ client, isBuyer: false });
const buyer = (client: string) => ({ client, isBuyer: true });
const hashOf = (name: string) => createHash('sha256').update(name).digest();

function open(maxBytes: number, sharedBy?: number) {
  const clock = createManualClock(1_700_000_000_000);
  const room = createReplyRoom({ maxBytes, clock, ...(sharedBy !== undefined && { sharedBy }) });
  return {
    clock,
    room,
    /** Keeps a reply for an offer; false where there is no room for it. */
    offer(asker: { client: string; isBuyer: boolean }, bytes: number, name = `${Math.random()}`): boolean {
      const held = taken(room, asker, bytes);
      held?.keep(hashOf(name), clock.nowMs() + LIFE_MS);
      return held !== null;
    },
  };
}

function taken(room: ReplyRoom, asker: { client: string; isBuyer: boolean }, bytes: number) {
  try {
    return room.take(asker, bytes);
  } catch (error) {
    expect(error).toMatchObject({ status: 503, code: 'reply_store_full', retryAfterSeconds: 30, charged: false });
    return null;
  }
}

const isFull = (room: ReplyRoom, asker = buyer('late')): boolean => {
  try {
    room.check(asker);
    return false;
  } catch (error) {
    expect(error).toMatchObject({ status: 503, code: 'reply_store_full', retryAfterSeconds: 30, charged: false });
    return true;
  }
};

describe('replies of unpaid offers', () => {
  test('take up at most half of the room, and what was paid for all of it', () => {
    const { room, offer } = open(1000);
    for (let at = 0; at < 100; at++) offer(buyer(`buyer ${at}`), 10);
    expect([offer(buyer('late'), 1), isFull(room)]).toEqual([false, true]);
    room.set({ all: 500, offered: 500 });
    expect(isFull(room)).toBe(true);
    room.answered(hashOf('of another process'), 500);
    room.set({ all: 1000, offered: 0 });
    expect(isFull(room)).toBe(true);
    // Paid for: never refused.
    room.answered(hashOf('one more'), 10);
  });

  test('are refused when answers that were paid for fill the rest, to the byte', () => {
    const { room, offer } = open(1000);
    room.answered(hashOf('a'), 900);
    expect([offer(buyer('a'), 101), offer(buyer('a'), 100), isFull(room)]).toEqual([false, true, true]);
    const { room: other } = open(1000);
    other.set({ all: 999, offered: 0 });
    expect(isFull(other)).toBe(false);
    other.set({ all: 1000, offered: 0 });
    expect(isFull(other)).toBe(true);
  });

  test('of one client stop where it would hold more than is left', () => {
    const { room, offer } = open(1000);
    expect([offer(stranger('greedy'), 200), offer(stranger('greedy'), 1), offer(stranger('greedy'), 1)]).toEqual([
      true,
      false,
      false,
    ]);
    // Five hundred for offers, less a fifth for buyers: two hundred are left, and the next has them to the byte.
    expect([isFull(room, stranger('greedy')), isFull(room, stranger('other'))]).toEqual([true, false]);
    expect([offer(stranger('other'), 201), offer(stranger('other'), 200)]).toEqual([false, true]);
    expect(isFull(room, stranger('late'))).toBe(true);
  });

  test('of one IPv6 site are one client’s', () => {
    const { offer } = open(1000);
    expect(offer(stranger('2001:db8:1:0::/64'), 150)).toBe(true);
    expect(offer(stranger('2001:db8:1:1::/64'), 101)).toBe(false);
    expect(offer(stranger('2001:db8:2:1::/64'), 101)).toBe(true);
  });

  test('of a client that has not paid are a 24th at most, so that twenty that come one after another leave room', () => {
    const mib = 1024 * 1024;
    // Half of it, less a fifth for buyers, is 48 MiB.
    const { offer, room } = open(120 * mib);
    expect([offer(stranger('a'), 2 * mib + 1), offer(stranger('a'), 2 * mib), offer(stranger('a'), 1)]).toEqual([
      false,
      true,
      false,
    ]);
    expect([isFull(room, stranger('a')), isFull(room, stranger('b'))]).toEqual([true, false]);
    expect(offer(stranger('2001:db8:1:0::/64'), mib + 1)).toBe(true);
    expect([offer(stranger('2001:db8:1:1::/64'), mib), offer(stranger('2001:db8:1:1::/64'), mib - 1)]).toEqual([
      false,
      true,
    ]);
    for (let at = 0; at < 20; at++) expect(offer(stranger(`client ${at}`), 2 * mib)).toBe(true);
    expect(offer(stranger('late'), 2 * mib)).toBe(true);
    expect(offer(buyer('buyer'), 6 * mib)).toBe(true);
  });

  test('of a client that has not paid are a mebibyte where the room is small', () => {
    const mib = 1024 * 1024;
    const { offer } = open(10 * mib);
    expect([offer(stranger('a'), mib + 1), offer(stranger('a'), mib), offer(stranger('a'), 1)]).toEqual([
      false,
      true,
      false,
    ]);
    // Two processes: of each one’s part.
    const { offer: ofOne } = open(240 * mib, 2);
    expect([ofOne(stranger('a'), 2 * mib + 1), ofOne(stranger('a'), 2 * mib)]).toEqual([false, true]);
  });

  test('leave a fifth to buyers, who share it in the same way', () => {
    const { room, offer } = open(1000);
    for (let at = 0; at < 400; at++) offer(stranger(`client ${at}`), 1);
    expect([isFull(room, stranger('late')), offer(stranger('late'), 1), isFull(room)]).toEqual([true, false, false]);
    expect([offer(buyer('a'), 101), offer(buyer('a'), 50), offer(buyer('a'), 1)]).toEqual([false, true, false]);
    expect(offer(buyer('b'), 50)).toBe(true);
  });

  test('can be checked for without taking room', () => {
    const { room, offer } = open(10);
    for (let at = 0; at < 100; at++) expect(isFull(room, buyer('a'))).toBe(false);
    expect(offer(buyer('a'), 5)).toBe(true);
  });
});

describe('room comes back', () => {
  test('when an invoice is forgotten, to the millisecond', async () => {
    const { clock, room, offer } = open(1000);
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
    expect([isFull(room, buyer('b')), offer(buyer('b'), 200)]).toEqual([false, true]);
  });

  test('when an offer is paid and answered, to its client and to the rest', () => {
    const { room, offer } = open(1000);
    offer(buyer('a'), 250, 'first');
    expect(offer(buyer('a'), 100)).toBe(false);
    room.answered(hashOf('first'), 300);
    expect(offer(buyer('a'), 250, 'second')).toBe(true);
    room.answered(hashOf('second'), 300);
    // The answers have six hundred; the replies before them are gone.
    expect([offer(buyer('b'), 401), offer(buyer('b'), 400)]).toEqual([false, true]);
    expect(isFull(room)).toBe(true);
  });

  test('once alone for one offer, however often it is answered', () => {
    const { room, offer } = open(1000);
    offer(buyer('a'), 250, 'first');
    offer(buyer('b'), 250, 'other');
    room.answered(hashOf('first'), 10);
    room.answered(hashOf('first'), 10);
    expect([offer(buyer('c'), 251), offer(buyer('c'), 250)]).toEqual([false, true]);
    const { room: paid, offer: offerThere } = open(1000);
    offerThere(buyer('a'), 250, 'first');
    for (const bytes of [10, 10]) paid.answered(hashOf('first'), bytes);
    paid.answered(hashOf('x'), 600);
    expect([offerThere(buyer('b'), 381), offerThere(buyer('b'), 380)]).toEqual([false, true]);
  });

  test('when no invoice came of it', () => {
    const { room, offer } = open(1000);
    const held = taken(room, buyer('a'), 500);
    expect(isFull(room)).toBe(true);
    held?.release();
    expect(offer(buyer('b'), 500)).toBe(true);
    room.answered(hashOf('x'), 500);
    expect(isFull(room)).toBe(true);
  });

  test('and what was released is room for paid answers again', () => {
    const { room, offer } = open(1000);
    taken(room, buyer('a'), 500)?.release();
    room.answered(hashOf('x'), 600);
    expect([offer(buyer('b'), 401), offer(buyer('b'), 400)]).toEqual([false, true]);
  });
});

describe('a count of the store', () => {
  test('at the start counts what no client here holds, until it is gone', () => {
    const { room, offer } = open(1000);
    room.set({ all: 400, offered: 400 });
    expect([offer(stranger('a'), 1), offer(buyer('a'), 101), offer(buyer('a'), 100)]).toEqual([false, false, true]);
    expect(isFull(room)).toBe(true);
    room.set({ all: 100, offered: 100 });
    expect(offer(stranger('b'), 100)).toBe(true);
  });

  test('takes nothing from those whose replies it counted', async () => {
    const { clock, room, offer } = open(1000);
    offer(buyer('a'), 200);
    room.set({ all: 200, offered: 200 });
    expect([offer(buyer('a'), 101), offer(buyer('b'), 300)]).toEqual([false, true]);
    room.set({ all: 500, offered: 500 });
    expect(isFull(room)).toBe(true);
    // Forgotten here a little before the store forgets them.
    await clock.advance(LIFE_MS);
    room.set({ all: 500, offered: 500 });
    expect(isFull(room)).toBe(true);
    room.set({ all: 0, offered: 0 });
    expect(offer(buyer('c'), 500)).toBe(true);
  });

  test('leaves room to replies that are on their way to the store', () => {
    const { room, offer } = open(1000);
    const held = taken(room, buyer('a'), 300);
    room.set({ all: 600, offered: 0 });
    expect([offer(buyer('b'), 101), offer(buyer('b'), 100)]).toEqual([false, true]);
    held?.keep(hashOf('a'), 0);
  });

  test('that is above the room leaves none, and lends none', () => {
    const { room, offer } = open(1000);
    room.set({ all: 1500, offered: 1500 });
    expect(isFull(room)).toBe(true);
    room.set({ all: 900, offered: 900 });
    expect(isFull(room)).toBe(true);
    room.set({ all: 0, offered: 0 });
    expect([offer(buyer('a'), 501), offer(buyer('a'), 500)]).toEqual([false, true]);
  });

  test('that comes late does not let offers have more than half', () => {
    const { room, offer } = open(1000);
    offer(buyer('a'), 250);
    room.set({ all: 0, offered: 0 });
    expect([offer(buyer('b'), 251), offer(buyer('b'), 250), isFull(room)]).toEqual([false, true, true]);
  });
});

test('a refusal says that there is no room, and that there will be', () => {
  const { room } = open(1);
  expect(() => room.check(buyer('a'))).toThrow('No room to keep another reply; try again later.');
});

test('two processes have half of it each before the first count, for answers too', () => {
  const { room, offer } = open(2000, 2);
  room.answered(hashOf('a'), 800);
  expect([offer(buyer('a'), 201), offer(buyer('a'), 200)]).toEqual([false, true]);
});

test('two processes share the room by parts of what the last count left', () => {
  const { room, offer } = open(2000, 2);
  // Of half the room half, less a fifth of that for buyers.
  expect([offer(stranger('a'), 401), offer(stranger('a'), 400), isFull(room, stranger('b'))]).toEqual([
    false,
    true,
    true,
  ]);
  expect([offer(buyer('c'), 101), offer(buyer('c'), 100), isFull(room)]).toEqual([false, true, true]);
  room.set({ all: 700, offered: 700 });
  expect([offer(buyer('d'), 151), offer(buyer('d'), 150), isFull(room)]).toEqual([false, true, true]);
  room.set({ all: 1900, offered: 650 });
  expect([offer(buyer('e'), 51), offer(buyer('e'), 50)]).toEqual([false, true]);
});
