import { beforeEach, expect, test } from 'vitest';
import { createClaimAlarm } from '../../../../../src/payment/channels/claim-health.ts';
import { createManualClock, type ManualClock } from '../../../../support/manual-clock.ts';
import { quiet } from '../../../../support/quiet.ts';

const HOUR_MS = 3_600_000;
const FAILS = () => Promise.reject(new Error('no provider answers'));
const SUCCEEDS = async () => {};

let clock: ManualClock;
/** The charges that are overdue, and the time before which the alarm asked for them. */
let overdue: bigint;
let askedBefore: number;
/** All charges that wait for their claim. */
let unclaimed: bigint;
let errors: object[];
let alarm: ReturnType<typeof createClaimAlarm>;
beforeEach(() => {
  clock = createManualClock(1_800_000_000_000);
  [overdue, askedBefore, unclaimed, errors] = [0n, 0, 10n ** 12n, []];
  const totalsOverdue = async (_network: string, beforeMs: number) => {
    if (beforeMs === Number.MAX_SAFE_INTEGER) return unclaimed;
    askedBefore = beforeMs;
    return overdue;
  };
  const bounds = { threshold: 1_000_000n, ageMs: 6 * HOUR_MS };
  const log = { ...quiet, error: (detail: object) => void errors.push(detail) };
  alarm = createClaimAlarm({ clock, log }, { totalsOverdue }, 'eip155:5042', bounds);
});

/** Rounds of claims, a minute apart. */
async function rounds(count: number, claim: () => Promise<void>): Promise<void> {
  for (let round = 0; round < count; round++) {
    await alarm.round(claim).catch(() => {});
    await clock.advance(60_000);
  }
}

test('the operator gets an error when a charge waits for more than twice its time, once an hour', async () => {
  await rounds(1, SUCCEEDS);
  expect([errors, clock.nowMs() - 60_000 - askedBefore]).toEqual([[], 12 * HOUR_MS]);
  overdue = 5n;
  await rounds(60, SUCCEEDS);
  expect(errors).toEqual([{ overdue: '5', failedRounds: 0, areSalesStopped: false }]);
  await rounds(1, SUCCEEDS);
  expect(errors.length).toBe(2);
});

test('the operator gets an error when three rounds in a row have failed, and not when two have', async () => {
  await rounds(2, FAILS);
  await rounds(1, SUCCEEDS);
  await rounds(2, FAILS);
  expect(errors).toEqual([]);
  await rounds(1, FAILS);
  expect(errors).toEqual([{ overdue: '0', failedRounds: 3, areSalesStopped: false }]);
});

test('a round whose transaction was not carried out has failed', async () => {
  const { operate } = alarm.watching({ operate: async () => ({ kind: 'failed', reason: 'the transaction reverted' }) });
  await rounds(3, async () => void (await operate({} as Parameters<typeof operate>[0])));
  expect(errors).toEqual([{ overdue: '0', failedRounds: 3, areSalesStopped: false }]);
});

test('claims cannot be counted on once three rounds in a row have failed, until one succeeds', async () => {
  await rounds(2, FAILS);
  expect(alarm.why()).toBeNull();
  await rounds(1, FAILS);
  expect([alarm.why(), alarm.whyStopped()]).toEqual(['claims of payment channels fail', null]);
  await rounds(1, SUCCEEDS);
  expect(alarm.why()).toBeNull();
});

test('the rail is not offered while rounds fail and more than ten times the threshold is overdue', async () => {
  overdue = 10_000_000n;
  await rounds(3, FAILS);
  expect(alarm.whyStopped()).toBeNull();
  overdue += 1n;
  await rounds(1, FAILS);
  expect(alarm.whyStopped()).toBe('claims of payment channels fail');
  await rounds(1, SUCCEEDS);
  expect(alarm.whyStopped()).toBeNull();
});

test('the rail is not offered once more than ten times the threshold was charged since rounds fail, however young', async () => {
  await rounds(1, FAILS);
  unclaimed += 10_000_000n;
  await rounds(2, FAILS);
  expect(alarm.whyStopped()).toBeNull();
  unclaimed += 1n;
  await rounds(1, FAILS);
  expect(alarm.whyStopped()).toBe('claims of payment channels fail');
  await rounds(1, SUCCEEDS);
  await rounds(3, FAILS);
  expect(alarm.whyStopped()).toBeNull();
});

test('sales go on while rounds succeed, whatever channels that were set aside owe', async () => {
  overdue = 10n ** 12n;
  await rounds(5, SUCCEEDS);
  expect([alarm.why(), alarm.whyStopped(), errors.length]).toEqual([null, null, 1]);
});
