import { describe, expect, test } from 'vitest';
import { createNewcomers } from '../../../../../src/payment/lightning/issuance.ts';
import { createManualClock } from '../../../../support/manual-clock.ts';

const CLIENT = '192.0.2.1';
const network = (number: number, site = 1) => `2001:db8:${site}:${number.toString(16)}::/64`;

function open(maxClients?: number) {
  const clock = createManualClock(1_700_000_000_000);
  const newcomers = createNewcomers(clock, maxClients);
  /** Whether a client is new at each of so many requests, so far apart. */
  async function asks(client: string, times: number, everyMs: number): Promise<boolean[]> {
    const isNew: boolean[] = [];
    for (let at = 0; at < times; at++) {
      isNew.push(newcomers.asks(client));
      await clock.advance(everyMs);
    }
    return isNew;
  }
  return { clock, newcomers, asks };
}

describe('a client of the Lightning routes', () => {
  test('is new the first time, and as long as it waits two seconds between four tries', async () => {
    const { asks } = open();
    expect(await asks(CLIENT, 4, 2000)).toEqual([true, true, true, true]);
  });

  test('that asks each second is new no longer after three times, for as long as it goes on', async () => {
    const { asks } = open();
    const isNew = await asks(CLIENT, 120, 1000);
    expect(isNew.slice(0, 3)).toEqual([true, true, true]);
    expect(isNew.slice(3)).toEqual(Array(117).fill(false));
  });

  test('that kept asking is new again after a minute without a request', async () => {
    const { asks, clock, newcomers } = open();
    await asks(CLIENT, 120, 1000);
    await clock.advance(30_000);
    expect(newcomers.asks(CLIENT)).toBe(false);
    await clock.advance(60_000);
    expect(newcomers.asks(CLIENT)).toBe(true);
  });

  test('that got an offer is not new for ten minutes, however rarely it asks', async () => {
    const { clock, newcomers } = open();
    newcomers.offered(CLIENT);
    await clock.advance(599_999);
    expect(newcomers.asks(CLIENT)).toBe(false);
    await clock.advance(1);
    expect(newcomers.asks(CLIENT)).toBe(true);
  });

  test('keeps nothing from the requests that were taken back, neither for it nor against it', async () => {
    const { newcomers } = open();
    for (let at = 0; at < 10; at++) {
      expect(newcomers.asks(CLIENT)).toBe(true);
      newcomers.forgive(CLIENT);
    }
    for (let at = 0; at < 5; at++) newcomers.forgive(CLIENT);
    expect(Array.from({ length: 5 }, () => newcomers.asks(CLIENT))).toEqual([true, true, true, false, false]);
  });

  test('is not affected by the requests of another client', async () => {
    const { asks, newcomers } = open();
    await asks('192.0.2.2', 50, 10);
    newcomers.offered('192.0.2.2');
    expect(newcomers.asks(CLIENT)).toBe(true);
  });
});

describe('an IPv6 /48', () => {
  test('may ask as often as four clients, from however many of its networks', () => {
    const { newcomers } = open();
    const isNew = Array.from({ length: 20 }, (_, at) => newcomers.asks(network(at)));
    expect(isNew).toEqual([...Array(12).fill(true), ...Array(8).fill(false)]);
    expect(newcomers.asks(network(1, 2))).toBe(true);
  });

  test('gets as many offers as four clients', () => {
    const { newcomers } = open();
    for (let at = 0; at < 3; at++) newcomers.offered(network(at));
    expect(newcomers.asks(network(8))).toBe(true);
    newcomers.offered(network(3));
    expect(newcomers.asks(network(9))).toBe(false);
    expect(newcomers.asks(network(1, 2))).toBe(true);
  });
});

test('of more clients than are remembered the one that was silent the longest is forgotten', () => {
  const { newcomers } = open(2);
  for (let at = 0; at < 4; at++) newcomers.asks('a');
  expect(newcomers.asks('a')).toBe(false);
  newcomers.asks('b');
  newcomers.asks('c');
  expect(newcomers.asks('a')).toBe(true);
});
