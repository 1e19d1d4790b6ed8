import { createHash } from 'node:crypto';
import type { Config } from '../config.ts';
import { type Clock, DAY_MS, utcDay } from '../lib/clock.ts';
import {
  countSharedClient,
  createMinuteWindows,
  type OpenWindows,
  openClientWindows,
  siteKey,
} from '../lib/limits/count.ts';
import type { ClaimAccount, FacilitatorCounts, LightningStore, ReachedCap } from '../store/ports/lightning.ts';

// The limits of settle calls: a client's calls a minute, in memory or shared; parts of a day's claims, in the ledger,
// so that a restart keeps them. Figures may be a second old: the claim's own transaction checks the caps exactly.

/** One client may use a tenth of the day's cap, and at least one claim. All IPv6 clients of a /48 share one tenth. */
const CLIENT_SHARE = 10;
/** One payee may have a twentieth of the day's cap, and at least one claim. */
const PAYEE_SHARE = 20;
/** Half of the day's cap, and at least one claim, is open to all payees. The other half is for known ones. */
const OPEN_SHARE = 2;

/** Why a call is refused. `cap` is the part of the day that is used up. */
export type Barrier = { readonly retryAfterSeconds: number } & (
  | { readonly status: 429; readonly reason: 'rate_limited' }
  | { readonly status: 503; readonly reason: 'daily_cap_reached'; readonly cap: ReachedCap }
);

export interface Limits {
  /** Counts a call; null admits it. Rejects when the store does not answer. */
  barrier(client: string): Promise<Barrier | null>;
  account(client: string, payTo: Uint8Array): ClaimAccount;
  /** The refusal of a claim whose transaction found this part of the day used up. */
  capReached(cap: ReachedCap): Barrier;
}

/** `open`: where calls a minute are counted, by default in memory. */
export function createLimits(
  clock: Clock,
  store: Pick<LightningStore, 'clientCount'>,
  counts: Counts,
  { perMinute, dailyCap }: Config['facilitator'],
  open: OpenWindows = () => createMinuteWindows(clock),
): Limits {
  const clientCap = partOf(dailyCap, CLIENT_SHARE);
  const payeeCap = partOf(dailyCap, PAYEE_SHARE);
  const openCap = partOf(dailyCap, OPEN_SHARE);
  const windows = openClientWindows(open, 'settle calls');

  // With the day or with the payee, so that a client cannot be followed to the next day, or to another payee.
  const hashOf = (client: string, salt: string | Uint8Array): Buffer =>
    createHash('sha256')
      .update(salt)
      .update(siteKey(client) ?? client)
      .digest();

  function account(client: string, payTo: Uint8Array): ClaimAccount {
    const day = utcDay(clock.nowMs());
    const [clientHash, payeeClientHash] = [hashOf(client, day), hashOf(client, payTo)];
    return { day, clientHash, payeeClientHash, dailyCap, clientCap, payeeCap, openCap };
  }

  async function tooFast(client: string): Promise<Barrier | null> {
    if (perMinute === 0) return null;
    const { left, resetSeconds } = await countSharedClient(perMinute, windows, client);
    return left < 0 ? { status: 429, reason: 'rate_limited', retryAfterSeconds: resetSeconds } : null;
  }

  function capReached(cap: ReachedCap): Barrier {
    const untilMidnightMs = DAY_MS - (clock.nowMs() % DAY_MS);
    return { status: 503, reason: 'daily_cap_reached', cap, retryAfterSeconds: Math.ceil(untilMidnightMs / 1000) };
  }

  return {
    async barrier(client) {
      const fast = await tooFast(client);
      if (fast) return fast;
      // No client can have used up its share while all together claimed less: on most days there is nothing to read.
      if ((await counts.atMostToday()) < clientCap) return null;
      if (await counts.isDayFull()) return capReached('daily_cap');
      const day = utcDay(clock.nowMs());
      const ofClient = await store.clientCount(day, hashOf(client, day));
      return ofClient >= clientCap ? capReached('client_cap') : null;
    },
    account,
    capReached,
  };
}

function partOf(cap: number, share: number): number {
  return Math.max(1, Math.floor(cap / share));
}

/** The greatest age of the figures. */
const FRESH_MS = 1000;

/** Every promise rejects when the store does not answer. */
export interface Counts {
  /** Of the current UTC day, from the ledger. */
  current(): Promise<FacilitatorCounts>;
  /** With every claim that this process has recorded, for who looks right after a claim. */
  withOwnClaims(): Promise<FacilitatorCounts>;
  /** An upper bound of today's claims. A cap above it is not reached. */
  atMostToday(): Promise<number>;
  isDayFull(): Promise<boolean>;
  claimed(): void;
}

interface Snapshot {
  readonly day: string;
  readonly readAtMs: number;
  readonly counts: Promise<FacilitatorCounts>;
}

/** Reads at most once a second for all: the descriptor is public, and every settle call needs the day's count. */
export function createCounts(
  clock: Clock,
  store: Pick<LightningStore, 'facilitatorCounts'>,
  dailyCap: number,
  ownPayTo: () => string | null,
): Counts {
  let snapshot: Snapshot | null = null;
  // Of this process since the read began. The snapshot may include some of them.
  let claimedSince = 0;

  function read(day: string, now: number): Promise<FacilitatorCounts> {
    const own = ownPayTo();
    const counts = store.facilitatorCounts(day, own === null ? null : Buffer.from(own, 'hex'));
    const taken = { day, readAtMs: now, counts };
    snapshot = taken;
    claimedSince = 0;
    counts.catch(() => {
      if (snapshot === taken) snapshot = null;
    });
    return counts;
  }

  function current(): Promise<FacilitatorCounts> {
    const now = clock.nowMs();
    const day = utcDay(now);
    // `abs`, because a clock that was set back must not keep old figures until it catches up.
    const isFresh = snapshot?.day === day && Math.abs(now - snapshot.readAtMs) < FRESH_MS;
    return snapshot && isFresh ? snapshot.counts : read(day, now);
  }

  function readNow(): Promise<FacilitatorCounts> {
    const now = clock.nowMs();
    return read(utcDay(now), now);
  }

  return {
    current,
    withOwnClaims: () => (claimedSince === 0 ? current() : readNow()),
    atMostToday: async () => (await current()).today + claimedSince,
    async isDayFull() {
      const { today } = await current();
      if (today >= dailyCap || today + claimedSince < dailyCap) return today >= dailyCap;
      return (await readNow()).today >= dailyCap;
    },
    claimed() {
      claimedSince += 1;
    },
  };
}
