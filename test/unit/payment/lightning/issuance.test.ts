import { describe, expect, it } from 'vitest';
import { TooMany } from '../../../../src/errors.ts';
import { createIssuance } from '../../../../src/payment/lightning/issuance.ts';

function clockAt(start: number) {
  let now = start;
  return { nowMs: () => now, sleep: async () => {}, pass: (ms: number) => (now += ms) };
}

/** How many of `calls` were let through. */
async function admitted(issue: (client: string) => Promise<void>, client: string, calls: number): Promise<number> {
  let count = 0;
  for (let i = 0; i < calls; i++) {
    try {
      await issue(client);
      count++;
    } catch (error) {
      expect(error).toBeInstanceOf(TooMany);
      expect(error).toMatchObject({ status: 429, code: 'exact_lnbtc_invoice_issuance_denied', charged: false });
    }
  }
  return count;
}

describe('the issuance limiter', () => {
  it('lets each client have its number a minute, and again in the next', async () => {
    const clock = clockAt(1_000_000);
    const issue = createIssuance({ client: 3, total: 0 }, clock);
    expect(await admitted(issue, 'a', 5)).toBe(3);
    expect(await admitted(issue, 'b', 5)).toBe(3);
    clock.pass(59_999);
    expect(await admitted(issue, 'a', 1)).toBe(0);
    clock.pass(1);
    expect(await admitted(issue, 'a', 5)).toBe(3);
  });

  it('bounds all clients together', async () => {
    const issue = createIssuance({ client: 0, total: 4 }, clockAt(0));
    expect((await admitted(issue, 'a', 3)) + (await admitted(issue, 'b', 3))).toBe(4);
  });

  it('does not let a client over its limit use up what belongs to all', async () => {
    const issue = createIssuance({ client: 1, total: 3 }, clockAt(0));
    expect(await admitted(issue, 'greedy', 50)).toBe(1);
    expect((await admitted(issue, 'b', 1)) + (await admitted(issue, 'c', 1))).toBe(2);
  });

  it('says when to come back', async () => {
    const clock = clockAt(0);
    const issue = createIssuance({ client: 1, total: 0 }, clock);
    await issue('a');
    clock.pass(20_500);
    await expect(issue('a')).rejects.toEqual(expect.objectContaining({ retryAfterSeconds: 40 }));
  });

  it('is off at 0', async () => {
    expect(await admitted(createIssuance({ client: 0, total: 0 }, clockAt(0)), 'a', 1000)).toBe(1000);
  });
});
