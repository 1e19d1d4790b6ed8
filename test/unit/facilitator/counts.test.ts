import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Counts, createCounts } from '../../../src/facilitator/limits.ts';
import { type OpenFacilitator, openFacilitator } from '../../support/lightning/facilitator.ts';

const NOON = Date.parse('2026-03-01T12:00:00Z');
const OWN = Buffer.alloc(33, 2);

let ledger: OpenFacilitator;
let counts: Counts;
beforeEach(() => {
  ledger = openFacilitator({ startMs: NOON });
  const { store, clock } = ledger;
  counts = createCounts(clock, store, 3, () => OWN.toString('hex'));
});
afterEach(() => ledger.close());

let made = 0;
/** A claim by any client, in this process or another. */
async function claim(day: string, payTo: Uint8Array = Buffer.alloc(33, 3)): Promise<void> {
  const paymentHash = Buffer.alloc(32);
  made += 1;
  paymentHash.writeUInt32BE(made);
  const hashes = { clientHash: Buffer.alloc(32), payeeClientHash: Buffer.alloc(32) };
  const account = { day, ...hashes, dailyCap: 100, clientCap: 100, payeeCap: 100, openCap: 100 };
  const key = { network: 'lnbtc:000000000019d6689c085ae165831e93', paymentHash, payTo, amountMsat: 1n };
  await ledger.store.claim({ ...key, claimedAt: NOON, keepUntil: NOON, grant: null, account });
}

describe('the counts', () => {
  it("are the ledger's, at most a second old", async () => {
    await claim('2026-03-01', OWN);
    expect(await counts.current()).toEqual({ total: 1, today: 1, nodes: 1, own: 1 });
    await claim('2026-03-01');
    ledger.clock.now += 999;
    expect(await counts.current()).toMatchObject({ total: 1 });
    ledger.clock.now += 1;
    expect(await counts.current()).toEqual({ total: 2, today: 2, nodes: 2, own: 1 });
  });

  it('are of the current day, from its first moment', async () => {
    await claim('2026-03-01');
    ledger.clock.now = Date.parse('2026-03-01T23:59:59.999Z');
    expect(await counts.current()).toMatchObject({ total: 1, today: 1 });
    ledger.clock.now += 1;
    expect(await counts.current()).toMatchObject({ total: 1, today: 0 });
  });

  it('do not wait for a clock that was set back', async () => {
    await counts.current();
    await claim('2026-03-01');
    ledger.clock.now -= 5000;
    expect(await counts.current()).toMatchObject({ total: 1 });
  });

  it('report the day full with the claim of this process that fills it', async () => {
    for (let claims = 0; claims < 3; claims++) {
      expect([await counts.isDayFull(), await counts.atMostToday()]).toEqual([false, claims]);
      await claim('2026-03-01');
      counts.claimed();
    }
    expect(await counts.isDayFull()).toBe(true);
    expect(await counts.current()).toMatchObject({ today: 3 });
  });

  it('do not report the day full when they count a claim twice', async () => {
    await claim('2026-03-01');
    await claim('2026-03-01');
    await counts.current();
    // Reported late: the figures include it already.
    counts.claimed();
    expect(await counts.atMostToday()).toBe(3);
    expect([await counts.isDayFull(), await counts.atMostToday()]).toEqual([false, 2]);
  });

  it('with the claims of this process are read again after one of them, and else at most a second old', async () => {
    await claim('2026-03-01');
    expect(await counts.withOwnClaims()).toMatchObject({ total: 1 });
    await claim('2026-03-01');
    expect(await counts.withOwnClaims()).toMatchObject({ total: 1 });
    counts.claimed();
    expect(await counts.withOwnClaims()).toMatchObject({ total: 2 });
  });

  it('are not cached when they could not be read', async () => {
    let isAway = true;
    const facilitatorCounts: typeof ledger.store.facilitatorCounts = (day, own) =>
      isAway ? Promise.reject(new Error('away')) : ledger.store.facilitatorCounts(day, own);
    counts = createCounts(ledger.clock, { facilitatorCounts }, 3, () => null);
    await expect(counts.current()).rejects.toThrow('away');
    isAway = false;
    expect(await counts.current()).toEqual({ total: 0, today: 0, nodes: 0, own: 0 });
  });

  it('ask the ledger again only when claims of this process may have filled the day', async () => {
    let reads = 0;
    const facilitatorCounts: typeof ledger.store.facilitatorCounts = (day, own) => {
      reads += 1;
      return ledger.store.facilitatorCounts(day, own);
    };
    counts = createCounts(ledger.clock, { facilitatorCounts }, 2, () => null);
    const full = async () => [await counts.isDayFull(), reads];
    expect([await full(), await full()]).toEqual(Array(2).fill([false, 1]));
    for (let claims = 0; claims < 2; claims++) {
      await claim('2026-03-01');
      counts.claimed();
    }
    expect(await full()).toEqual([true, 2]);
    expect(await full()).toEqual([true, 2]);
  });

  it('keep a newer reading when an older read fails late', async () => {
    const fail: ((error: Error) => void)[] = [];
    const facilitatorCounts: typeof ledger.store.facilitatorCounts = (day, own) =>
      fail.length === 0 ? new Promise((_, reject) => fail.push(reject)) : ledger.store.facilitatorCounts(day, own);
    counts = createCounts(ledger.clock, { facilitatorCounts }, 3, () => null);
    const slow = counts.current();
    ledger.clock.now += 1000;
    expect(await counts.current()).toMatchObject({ total: 0 });
    fail[0]?.(new Error('late'));
    await expect(slow).rejects.toThrow('late');
    await claim('2026-03-01');
    // Still the figures of this second, because the failed read did not discard them.
    expect(await counts.current()).toMatchObject({ total: 0 });
  });
});
