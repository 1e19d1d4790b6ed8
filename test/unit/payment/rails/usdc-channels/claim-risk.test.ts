import { beforeEach, describe, expect, test } from 'vitest';
import { type ClaimRisk, createClaimRisk, overdueBefore } from '../../../../../src/payment/channels/claim-health.ts';
import { createManualClock, type ManualClock } from '../../../../support/manual-clock.ts';

const START_MS = 1_800_000_000_000;
/** Ten times the threshold. */
const MOST = 70n;

let clock: ManualClock;
let unclaimed: bigint;
let overdue: bigint;
/** How often the sums were read, and the time before which charges were overdue. */
let reads: number;
let askedBefore: number;
let fails: boolean;
let risk: ClaimRisk;
beforeEach(() => {
  clock = createManualClock(START_MS);
  [unclaimed, overdue, reads, askedBefore, fails] = [1_000_000n, 0n, 0, 0, false];
  const totalsOverdue = async (_network: string, beforeMs: number) => {
    if (fails) throw new Error('the ledger is away');
    if (beforeMs === Number.MAX_SAFE_INTEGER) return unclaimed;
    reads++;
    askedBefore = beforeMs;
    return overdue;
  };
  const bounds = { threshold: 7n, ageMs: 1000 };
  risk = createClaimRisk(clock, { totalsOverdue }, 'eip155:5042', bounds);
});
const isRead = (count: number) => expect.poll(() => reads).toBe(count);

test('a charge is overdue once it waits for more than twice its time', () => {
  expect(overdueBefore({ ageMs: 1000 }, START_MS)).toBe(START_MS - 2000);
});

describe('while claims fail', () => {
  test('the sales of this process are bounded from memory, whatever waited before by plan', async () => {
    await risk.look();
    expect([risk.isTooMuch(MOST), risk.isTooMuch(MOST + 1n)]).toEqual([false, true]);
    for (let sale = 0; sale < 7; sale++) risk.note(10n);
    await risk.look();
    expect([reads, askedBefore, risk.isTooMuch(0n), risk.isTooMuch(1n)]).toEqual([1, START_MS - 2000, false, true]);
  });

  test('the sales of other processes count as soon as the sums are read again, a second later, and none counts twice', async () => {
    await risk.look();
    risk.note(30n);
    [unclaimed] = [unclaimed + 60n];
    await clock.advance(999);
    await risk.look();
    expect(reads).toBe(1);
    await clock.advance(1);
    await risk.look();
    await isRead(2);
    await expect.poll(() => risk.isTooMuch(10n)).toBe(false);
    expect(risk.isTooMuch(11n)).toBe(true);
  });

  test('what is claimed although rounds fail gives no room for more', async () => {
    await risk.look();
    unclaimed -= 500n;
    await risk.read();
    expect([risk.isTooMuch(MOST), risk.isTooMuch(MOST + 1n)]).toEqual([false, true]);
  });

  test('too much that is overdue stops all sales, also after a new start', async () => {
    overdue = MOST;
    await risk.look();
    expect(risk.isTooMuch(0n)).toBe(false);
    overdue += 1n;
    await risk.read();
    expect(risk.isTooMuch(0n)).toBe(true);
  });

  test('a ledger that cannot be read is an error at the first sale and after five seconds, and no sale waits for it before', async () => {
    fails = true;
    await expect(risk.look()).rejects.toThrow('the ledger is away');
    fails = false;
    await risk.look();
    fails = true;
    await clock.advance(4999);
    await risk.look();
    expect([risk.isTooMuch(MOST), risk.isTooMuch(MOST + 1n)]).toEqual([false, true]);
    await clock.advance(1);
    await expect(risk.look()).rejects.toThrow('the ledger is away');
    expect([risk.isTooMuch(MOST), risk.isTooMuch(MOST + 1n)]).toEqual([false, true]);
  });
});

describe('the bounds begin anew', () => {
  test('at once after a claim that has worked', async () => {
    await risk.look();
    risk.note(MOST);
    risk.worked();
    expect(risk.isTooMuch(MOST + 1n)).toBe(false);
    unclaimed += MOST;
    await risk.look();
    expect([risk.isTooMuch(MOST), risk.isTooMuch(MOST + 1n)]).toEqual([false, true]);
  });

  test('after a minute without trouble, and not where it comes back before', async () => {
    await risk.look();
    risk.note(MOST);
    risk.calm();
    await clock.advance(59_999);
    risk.calm();
    unclaimed += MOST;
    await risk.look();
    expect([reads, risk.isTooMuch(0n), risk.isTooMuch(1n)]).toEqual([2, false, true]);
    risk.calm();
    await clock.advance(60_000);
    risk.calm();
    expect(risk.isTooMuch(1n)).toBe(false);
  });

  test('without counting what was sold while claims worked', async () => {
    risk.note(1000n);
    risk.calm();
    await risk.look();
    expect(risk.isTooMuch(MOST)).toBe(false);
  });
});
