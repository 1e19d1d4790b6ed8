import { expect, test } from 'vitest';
import { createFailedRuns } from '../../../../../src/payment/lightning/serve-granted.ts';
import { createManualClock } from '../../../../support/manual-clock.ts';

const NOW_MS = 1_800_000_000_000;
const keyOf = (byte: number, network = 'lightning:mainnet') => ({
  network,
  paymentHash: new Uint8Array(32).fill(byte),
});

test('a claim whose run failed waits, and the error says how long and that the payment stays good', async () => {
  const clock = createManualClock(NOW_MS);
  const failures = createFailedRuns(clock);
  failures.failed(keyOf(1));
  failures.failed(keyOf(1));
  await clock.advance(500);
  expect(() => failures.check(keyOf(1))).toThrow(
    expect.objectContaining({
      status: 503,
      code: 'paid_run_failed',
      charged: 'unknown',
      retryAfterSeconds: 2,
      message: expect.stringContaining('stays good for 7 days'),
    }),
  );
  await clock.advance(1500);
  failures.check(keyOf(1));
});

test('a failed run makes no other claim wait, also not one of the same hash on another network', () => {
  const failures = createFailedRuns(createManualClock(NOW_MS));
  failures.failed(keyOf(1));
  failures.check(keyOf(2));
  failures.check(keyOf(1, 'lightning:testnet'));
});

test('a run that succeeds ends the waits of its claim', () => {
  const failures = createFailedRuns(createManualClock(NOW_MS));
  failures.failed(keyOf(1));
  failures.succeeded(keyOf(1));
  failures.check(keyOf(1));
});

test('beyond its bound the claim that failed longest ago is forgotten', () => {
  const failures = createFailedRuns(createManualClock(NOW_MS), 2);
  for (const byte of [1, 2, 1, 3]) failures.failed(keyOf(byte));
  failures.check(keyOf(2));
  for (const byte of [1, 3]) expect(() => failures.check(keyOf(byte))).toThrow('failed a moment ago');
});
