import { expect, test } from 'vitest';
import { createRecentBuyers } from '../../../../../src/payment/lightning/issuance.ts';
import { createManualClock } from '../../../../support/manual-clock.ts';

const HOUR_MS = 3_600_000;

test('a client that has paid is a buyer for an hour from its last payment, and no other client is', async () => {
  const clock = createManualClock(1_700_000_000_000);
  const buyers = createRecentBuyers(clock);
  expect(buyers.has('192.0.2.1')).toBe(false);
  buyers.add('192.0.2.1');
  await clock.advance(HOUR_MS - 1);
  expect([buyers.has('192.0.2.1'), buyers.has('192.0.2.2')]).toEqual([true, false]);
  buyers.add('192.0.2.1');
  await clock.advance(HOUR_MS - 1);
  expect(buyers.has('192.0.2.1')).toBe(true);
  await clock.advance(1);
  expect(buyers.has('192.0.2.1')).toBe(false);
});

test('of more buyers than are remembered those whose last payment is oldest are forgotten', () => {
  const buyers = createRecentBuyers(createManualClock(0), 2);
  for (const client of ['a', 'b', 'a', 'c']) buyers.add(client);
  expect(['a', 'b', 'c'].map((client) => buyers.has(client))).toEqual([true, false, true]);
});

test('ten thousand buyers are remembered', () => {
  const buyers = createRecentBuyers(createManualClock(0));
  for (let at = 0; at <= 10_000; at++) buyers.add(`client ${at}`);
  expect([0, 1, 10_000].map((at) => buyers.has(`client ${at}`))).toEqual([false, true, true]);
});
