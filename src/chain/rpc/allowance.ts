import type { Clock } from '../../lib/clock.ts';

/** The lowest rate, in requests a second. It is above zero, because only a request shows that a provider has recovered. */
const LEAST = 0.2;
/** Requests a second above which a learned limit is dropped. No public endpoint is known to have a higher limit; an operator's own node has none. */
const MOST = 100;
/** Factors of the rate: after a refusal, at most once a second, and after QUIET_MS without one. */
const FEWER = 0.8;
const MORE = 1.25;
const QUIET_MS = 2000;
const SECOND_MS = 1000;
/** The bucket holds half a second's requests. */
const BURST_SECONDS = 0.5;

/** How many requests a provider accepts, learned from its refusals alone. */
export interface Allowance {
  /** Requests that may be sent now. Infinite while no limit is known: before the first refusal, and after the rate grew past 100 a second. */
  free(): number;
  /** The most that `free` can be. */
  burst(): number;
  /** Estimated requests a second that the provider accepts. Infinite while no limit is known. */
  rate(): number;
  /** Counts a request that is sent, allowed or not. */
  spend(): void;
  /** The provider refused a request because there were too many. */
  refused(): void;
}

/**
 * A token bucket whose rate is learned from refusals.
 * - The first refusal sets it to the requests of the last second that were not refused.
 * - Each later refusal, at most one a second, lowers it by a fifth, but never below what the provider has served in the last second.
 * - Two seconds without a refusal raise it by a quarter.
 *
 * Public endpoints publish no limits (Arc's takes about 2 requests a second).
 */
export function createAllowance(clock: Clock): Allowance {
  let rate = Number.POSITIVE_INFINITY;
  // The rate before the last change.
  let before = rate;
  let level = Number.POSITIVE_INFINITY;
  let filledMs = 0;
  let changedMs = 0;
  // Times of the requests sent, and of the refusals, in the last second, oldest first.
  let sent: number[] = [];
  let refusals: number[] = [];

  const burst = (): number => Math.max(1, rate * BURST_SECONDS);

  function grow(now: number): void {
    // A slow provider gets the time of two requests, because fewer requests show nothing about its limit.
    if (now - changedMs < Math.max(QUIET_MS, (2 * SECOND_MS) / rate)) return;
    rate = rate * MORE > MOST ? Number.POSITIVE_INFINITY : rate * MORE;
    changedMs = now;
  }

  function fill(now: number): void {
    if (rate === Number.POSITIVE_INFINITY) return;
    grow(now);
    level = Math.min(burst(), level + (rate * Math.max(0, now - filledMs)) / SECOND_MS);
    filledMs = now;
  }

  return {
    free() {
      fill(clock.nowMs());
      return level;
    },
    burst,
    rate: () => rate,
    spend() {
      const now = clock.nowMs();
      fill(now);
      level -= 1;
      sent.push(now);
      // Bounds memory. At 201 entries the oldest 101 are dropped, so a rate learned from more is between 99 and 199.
      if (sent.length > 2 * MOST) sent = sent.slice(-MOST);
    },
    refused() {
      const now = clock.nowMs();
      refusals.push(now);
      [sent, refusals] = [lastSecond(sent, now), lastSecond(refusals, now)];
      // Refusals within one second change the rate once.
      if (rate === Number.POSITIVE_INFINITY || now - changedMs >= SECOND_MS) [before, changedMs] = [rate, now];
      const borne = sent.length - refusals.length;
      // Never below what the provider has served in the last second.
      const learned = before === Number.POSITIVE_INFINITY ? Math.max(1, borne) : Math.max(LEAST, borne, before * FEWER);
      rate = Math.min(rate, learned);
      [level, filledMs] = [0, now];
    },
  };
}

/** Those of the given times that lie in the second before `now`. */
function lastSecond(times: readonly number[], now: number): number[] {
  return times.filter((atMs) => now - atMs < SECOND_MS);
}
