import { expect, test } from 'vitest';
import { createReadSoon } from '../../../src/payment/ledger.ts';
import { createManualClock } from '../../support/manual-clock.ts';

const TIMEOUT_MS = 4000;
const UNAVAILABLE = { status: 503, code: 'ledger_unavailable', charged: 'unknown', retryAfterSeconds: 5 };

function ask(asked: Promise<string>) {
  const clock = createManualClock(Date.UTC(2026, 2, 3, 12));
  return { clock, answer: createReadSoon(clock)(asked).catch((error: unknown) => error) };
}

test('a ledger read that is answered in time returns its row; one that fails says charged "unknown"; neither leaves a timer', async () => {
  const [found, failed] = [ask(Promise.resolve('row')), ask(Promise.reject(new Error('disk')))];
  expect(await found.answer).toBe('row');
  expect(await failed.answer).toMatchObject({ ...UNAVAILABLE, cause: new Error('disk') });
  expect([...found.clock.pendingSleeps(), ...failed.clock.pendingSleeps()]).toEqual([]);
});

test('a ledger read without an answer in 4 s says charged "unknown", and a later answer changes nothing', async () => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const { clock, answer } = ask(promise);
  await clock.advance(TIMEOUT_MS - 1);
  expect(clock.pendingSleeps()).toEqual([1]);
  await clock.advance(1);
  resolve('row');
  expect(await answer).toMatchObject({ ...UNAVAILABLE, cause: new Error('the ledger did not answer in 4000 ms') });
});
