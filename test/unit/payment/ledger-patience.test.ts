import { expect, test } from 'vitest';
import { createReadSoon } from '../../../src/payment/ledger-patience.ts';
import { createManualClock } from '../../support/manual-clock.ts';

const PATIENCE_MS = 4000;
const UNAVAILABLE = { status: 503, code: 'ledger_unavailable', charged: 'unknown', retryAfterSeconds: 5 };

function ask(asked: Promise<string>) {
  const clock = createManualClock(Date.UTC(2026, 2, 3, 12));
  return { clock, told: createReadSoon(clock)(asked).catch((error: unknown) => error) };
}

test('a read that is answered in time is told, one that fails is of unknown outcome, and nothing sleeps on', async () => {
  const [found, failed] = [ask(Promise.resolve('row')), ask(Promise.reject(new Error('disk')))];
  expect(await found.told).toBe('row');
  expect(await failed.told).toMatchObject({ ...UNAVAILABLE, cause: new Error('disk') });
  expect([...found.clock.sleepers(), ...failed.clock.sleepers()]).toEqual([]);
});

test('a read that is not is given up at its moment, and its late answer counts for nothing', async () => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const { clock, told } = ask(promise);
  await clock.advance(PATIENCE_MS - 1);
  expect(clock.sleepers()).toEqual([1]);
  await clock.advance(1);
  resolve('row');
  expect(await told).toMatchObject({ ...UNAVAILABLE, cause: new Error('the ledger did not answer in 4000 ms') });
});
