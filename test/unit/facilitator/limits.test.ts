import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Config } from '../../../src/config.ts';
import { type Counts, createCounts, createLimits } from '../../../src/facilitator/limits.ts';
import { createMinuteWindows } from '../../../src/lib/limits/count.ts';
import { LIMITS, type OpenFacilitator, openFacilitator } from '../../support/lightning/facilitator.ts';
import { createManualClock } from '../../support/manual-clock.ts';

const NOON = Date.parse('2026-03-01T12:00:00Z');
const UNTIL_MIDNIGHT = 12 * 3600;

let ledger: OpenFacilitator;
let counts: Counts;
beforeEach(() => {
  ledger = openFacilitator({ startMs: NOON });
});
afterEach(() => ledger.close());

function limitsOf(change: Partial<Config['facilitator']>) {
  const limits = { ...LIMITS, ...change };
  const { store, clock } = ledger;
  counts = createCounts(clock, store, limits.dailyCap, () => null);
  return createLimits(clock, store, counts, limits);
}

const PAYEE = Buffer.alloc(33, 3);

let made = 0;
/** A claim under the caps of the day and of the client alone, unless a payee is given. */
async function claimFor(client: string, limits: ReturnType<typeof limitsOf>, payTo?: Uint8Array) {
  const paymentHash = Buffer.alloc(32);
  made += 1;
  paymentHash.writeUInt32BE(made);
  const key = { network: 'lnbtc:000000000019d6689c085ae165831e93', paymentHash, payTo: payTo ?? PAYEE };
  const times = { claimedAt: NOON, keepUntil: NOON };
  const own = limits.account(client, key.payTo);
  const account = payTo ? own : { ...own, payeeCap: own.dailyCap, openCap: own.dailyCap };
  const outcome = await ledger.store.claim({ ...key, ...times, amountMsat: 1n, grant: null, account });
  if (outcome === 'claimed') counts.claimed();
  return outcome;
}

/** The results of a number of calls. */
async function calls(limits: ReturnType<typeof limitsOf>, client: string, count: number) {
  const reasons: (string | null)[] = [];
  for (let n = 0; n < count; n++) reasons.push((await limits.barrier(client))?.reason ?? null);
  return reasons;
}

describe('the minute', () => {
  it('lets a client call sixty times, and other clients sixty times each', async () => {
    const limits = limitsOf({});
    expect(await calls(limits, 'a', 60)).toEqual(Array(60).fill(null));
    ledger.clock.now += 45_500;
    expect(await limits.barrier('a')).toEqual({
      status: 429,
      reason: 'rate_limited',
      retryAfterSeconds: 15,
    });
    expect(await calls(limits, 'b', 60)).toEqual(Array(60).fill(null));
    ledger.clock.now += 14_500;
    expect(await limits.barrier('a')).toBeNull();
  });

  it("lets a /48 call four times as often as a client; a call over the client's limit does not count against the /48", async () => {
    const limits = limitsOf({ perMinute: 3 });
    const network = (n: number) => `2001:db8:7:${n}::/64`;
    const refused = { status: 429, reason: 'rate_limited', retryAfterSeconds: 60 };
    expect(await calls(limits, network(0), 9)).toEqual([null, null, null, ...Array(6).fill('rate_limited')]);
    for (let n = 1; n < 10; n++) expect(await limits.barrier(network(n))).toBeNull();
    expect(await limits.barrier(network(10))).toEqual(refused);
    expect(await limits.barrier('2001:db8:8:0::/64')).toBeNull();
    ledger.clock.now += 60_000;
    expect(await limits.barrier(network(10))).toBeNull();
  });

  it('is counted across the processes, separately for a client and its /48', async () => {
    const clock = createManualClock(NOON);
    const opened: string[] = [];
    const windows = (name: string) => {
      opened.push(name);
      const own = createMinuteWindows(clock);
      return {
        count: async (client: string) => own.count(client),
        takeBack: async (client: string) => own.takeBack(client),
      };
    };
    const { store } = ledger;
    const limits = createLimits(clock, store, counts, { ...LIMITS, perMinute: 1 }, windows);
    const of = async (client: string) => (await limits.barrier(client))?.reason ?? null;
    const asked = [1, 2, 3, 4, 5].map((n) => `2001:db8:7:${n}::/64`);
    expect(await Promise.all([...asked, '192.0.2.1', '192.0.2.1'].map(of))).toEqual([
      ...[null, null, null, null],
      ...['rate_limited', null, 'rate_limited'],
    ]);
    // Names that no other limit has. Processes of two versions count in the same windows.
    expect(opened).toEqual(['settle calls', 'settle calls of sites']);
  });

  it('is off at 0', async () => {
    expect(await calls(limitsOf({ perMinute: 0 }), 'a', 200)).toEqual(Array(200).fill(null));
  });
});

describe('the day', () => {
  it('is used up for all clients when the cap is reached, until UTC midnight', async () => {
    const limits = limitsOf({ dailyCap: 20 });
    for (let n = 0; n < 20; n++) expect(await claimFor(`client ${n}`, limits)).toBe('claimed');
    expect(await limits.barrier('somebody new')).toEqual({
      status: 503,
      reason: 'daily_cap_reached',
      cap: 'daily_cap',
      retryAfterSeconds: UNTIL_MIDNIGHT,
    });
    ledger.clock.now += UNTIL_MIDNIGHT * 1000 - 1;
    expect(await limits.barrier('somebody new')).toMatchObject({ retryAfterSeconds: 1 });
    ledger.clock.now += 1;
    expect(await limits.barrier('somebody new')).toBeNull();
  });

  it('reads one client’s claims only when all together have claimed as much as one may', async () => {
    const { store, clock } = ledger;
    const limits = limitsOf({ dailyCap: 20 });
    const asked: string[] = [];
    const clientCount: typeof store.clientCount = (day, hash) => {
      asked.push(day);
      return store.clientCount(day, hash);
    };
    const watched = createLimits(clock, { clientCount }, counts, { ...LIMITS, dailyCap: 20 });
    expect(await claimFor('a', limits)).toBe('claimed');
    expect([await watched.barrier('a'), asked]).toEqual([null, []]);
    expect(await claimFor('b', limits)).toBe('claimed');
    expect([await watched.barrier('a'), asked]).toEqual([null, ['2026-03-01']]);
  });

  it('is used up for one client after a tenth of it, and for that client only', async () => {
    const limits = limitsOf({ dailyCap: 39 });
    for (let n = 0; n < 3; n++) {
      expect(await limits.barrier('a')).toBeNull();
      expect(await claimFor('a', limits)).toBe('claimed');
    }
    expect(await limits.barrier('a')).toEqual({
      status: 503,
      reason: 'daily_cap_reached',
      cap: 'client_cap',
      retryAfterSeconds: UNTIL_MIDNIGHT,
    });
    expect(await claimFor('a', limits)).toBe('client_cap');
    expect(await limits.barrier('b')).toBeNull();
  });

  it('shows other processes’ claims within a second', async () => {
    const limits = limitsOf({ dailyCap: 10 });
    expect(await limits.barrier('a')).toBeNull();
    const others = limitsOf({ dailyCap: 10 });
    for (let n = 0; n < 10; n++) expect(await claimFor(`client ${n}`, others)).toBe('claimed');
    ledger.clock.now += 1000;
    expect(await limits.barrier('a')).toMatchObject({ reason: 'daily_cap_reached' });
  });

  it('leaves every client one claim, however small the cap', async () => {
    const limits = limitsOf({ dailyCap: 3 });
    expect(await limits.barrier('a')).toBeNull();
    expect(await claimFor('a', limits)).toBe('claimed');
    expect(await calls(limits, 'a', 1)).toEqual(['daily_cap_reached']);
    expect(await calls(limits, 'b', 1)).toEqual([null]);
  });

  it('is used up for a /48 after one client’s share, and not for its neighbour', async () => {
    const limits = limitsOf({ dailyCap: 30 });
    for (let n = 0; n < 3; n++) expect(await claimFor(`2001:db8:7:${n}::/64`, limits)).toBe('claimed');
    expect(await claimFor('2001:db8:7:9::/64', limits)).toBe('client_cap');
    expect(await limits.barrier('2001:db8:7:a::/64')).toMatchObject({ reason: 'daily_cap_reached' });
    expect([await limits.barrier('2001:db8:8:0::/64'), await claimFor('2001:db8:8:0::/64', limits)]).toEqual([
      null,
      'claimed',
    ]);
  });

  it('gives half of itself to all payees, a twentieth to each, and at least one claim', async () => {
    const limits = limitsOf({ dailyCap: 5 });
    expect(await claimFor('a', limits, Buffer.alloc(33, 4))).toBe('claimed');
    expect(await claimFor('b', limits, Buffer.alloc(33, 4))).toBe('payee_cap');
    expect(await claimFor('b', limits, Buffer.alloc(33, 5))).toBe('claimed');
    expect(await claimFor('c', limits, Buffer.alloc(33, 6))).toBe('open_cap');
    const least = { clientCap: 1, payeeCap: 1, openCap: 1 };
    expect(limitsOf({ dailyCap: 1 }).account('a', PAYEE)).toMatchObject(least);
  });

  it('keeps a client as a hash that differs on the next day', () => {
    const limits = limitsOf({});
    const today = limits.account('192.0.2.1', PAYEE);
    const caps = { dailyCap: 20_000, clientCap: 2000, payeeCap: 1000, openCap: 10_000 };
    expect(today).toMatchObject({ day: '2026-03-01', ...caps });
    expect(limits.account('192.0.2.1', PAYEE)).toEqual(today);
    expect(limits.account('192.0.2.2', PAYEE).clientHash).not.toEqual(today.clientHash);
    ledger.clock.now += UNTIL_MIDNIGHT * 1000;
    const tomorrow = limits.account('192.0.2.1', PAYEE);
    expect(tomorrow.day).toBe('2026-03-02');
    expect(tomorrow.clientHash).not.toEqual(today.clientHash);
  });

  it('keeps a payee’s clients as hashes that stay for this payee, and differ for another', () => {
    const limits = limitsOf({});
    const hashOf = (client: string, payTo = PAYEE) => limits.account(client, payTo).payeeClientHash;
    const today = hashOf('192.0.2.1');
    expect(hashOf('192.0.2.2')).not.toEqual(today);
    expect(hashOf('192.0.2.1', Buffer.alloc(33, 2))).not.toEqual(today);
    ledger.clock.now += UNTIL_MIDNIGHT * 1000;
    expect(hashOf('192.0.2.1')).toEqual(today);
    expect(hashOf('2001:db8:7:1::/64')).toEqual(hashOf('2001:db8:7:2::/64'));
  });
});
