import { createHash } from 'node:crypto';
import { utcDay } from '../lib/calendar.ts';
import type { Clock } from '../lib/clock.ts';
import { siteKey } from '../lib/limits/client-key.ts';
import { countSharedClient, openClientWindows } from '../lib/limits/client-limit.ts';
import { createMinuteWindows, type OpenWindows } from '../lib/limits/minute-windows.ts';
import type { ClaimAccount, LightningStore } from '../store/ports/proofs.ts';
import type { Counts } from './counts.ts';

/** One client may use this part of the day's cap, and at least one claim; an IPv6 client all of its site (/48) together. */
const CLIENT_SHARE = 10;
/** Payees that were first seen today may use this part of it, and at least one claim; the rest stays free for those of earlier days. */
const NEW_PAYEE_SHARE = 2;
const DAY_MS = 86_400_000;

/** What the facilitator does for anyone, as configured. */
export interface FacilitatorLimits {
  /** Settle calls a minute and client, and four times as many for an IPv6 site; 0 is off. */
  readonly perMinute: number;
  /** Claims a UTC day, for all. */
  readonly dailyCap: number;
  /** The longest `maxTimeoutSeconds` that is settled. */
  readonly maxTimeoutSeconds: number;
}

/** Why a call is not looked at now, and when to come again. */
export interface Barrier {
  readonly status: 429 | 503;
  readonly reason: 'rate_limited' | 'daily_cap_reached';
  readonly retryAfterSeconds: number;
}

/** The limits of the settle route, per client and in all. */
export interface Limits {
  /** Counts the call, and tells what keeps it out; rejects when the store cannot say how many were claimed. */
  barrier(client: string): Promise<Barrier | null>;
  /** Where a claim of this client is counted now. */
  account(client: string): ClaimAccount;
  /** The answer to a claim that found the day's cap, or the part of it that the client or a new payee may have, used up. */
  capReached(): Barrier;
}

interface LimitsOptions {
  readonly store: Pick<LightningStore, 'clientCount'>;
  readonly clock: Clock;
  readonly counts: Counts;
  readonly limits: FacilitatorLimits;
  /** Where calls are counted; this process's memory by default. */
  readonly windows?: OpenWindows | undefined;
}

/**
 * Calls a minute are counted in memory, or where the processes share them; the day's claims in the ledger, so that no restart gives them anew.
 * What is told here of the day may be a second old: a claim that slips through meets the same caps in its own transaction.
 */
export function createLimits({ store, clock, counts, limits, windows: open }: LimitsOptions): Limits {
  const { perMinute, dailyCap } = limits;
  const clientCap = partOf(dailyCap, CLIENT_SHARE);
  const newPayeeCap = partOf(dailyCap, NEW_PAYEE_SHARE);
  const windows = openClientWindows(open ?? (() => createMinuteWindows(clock)), 'settle calls');

  function account(client: string): ClaimAccount {
    const day = utcDay(clock.nowMs());
    // With the day in it, so that a client cannot be followed from one day to the next.
    const clientHash = createHash('sha256')
      .update(day)
      .update(siteKey(client) ?? client)
      .digest();
    return { day, clientHash, dailyCap, clientCap, newPayeeCap };
  }

  async function tooFast(client: string): Promise<Barrier | null> {
    if (perMinute === 0) return null;
    const { left, resetSeconds } = await countSharedClient(perMinute, windows, client);
    return left < 0 ? { status: 429, reason: 'rate_limited', retryAfterSeconds: resetSeconds } : null;
  }

  function capReached(): Barrier {
    const untilMidnightMs = DAY_MS - (clock.nowMs() % DAY_MS);
    return { status: 503, reason: 'daily_cap_reached', retryAfterSeconds: Math.ceil(untilMidnightMs / 1000) };
  }

  return {
    async barrier(client) {
      const fast = await tooFast(client);
      if (fast) return fast;
      // Nobody has used up a part that is more than all have claimed: most days end here, without a read.
      if ((await counts.atMostToday()) < clientCap) return null;
      if (await counts.isDayFull()) return capReached();
      const { day, clientHash } = account(client);
      return (await store.clientCount(day, clientHash)) >= clientCap ? capReached() : null;
    },
    account,
    capReached,
  };
}

function partOf(cap: number, share: number): number {
  return Math.max(1, Math.floor(cap / share));
}
