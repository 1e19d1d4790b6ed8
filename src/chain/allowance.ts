import type { Clock } from '../lib/clock.ts';

/** A provider is asked this often at the least, requests a second: one that refuses everything now may have been mended. */
const LEAST = 0.2;
/** Beyond this nothing is counted: no public endpoint is known to stop there, and a node of one's own has no limit. */
const MOST = 100;
/** A refusal is followed by fewer requests, once a second, and a quiet while by more. */
const FEWER = 0.8;
const MORE = 1.25;
const QUIET_MS = 2000;
const SECOND_MS = 1000;
/** Half a second's requests may go at once. */
const BURST_SECONDS = 0.5;

/** How many requests a provider bears, learned from its refusals alone. */
export interface Allowance {
  /** Requests that may go now; infinite until the provider has refused one for its number. */
  free(): number;
  /** The most that `free` can be. */
  burst(): number;
  /** Requests a second that the provider bears; infinite until it has refused one. */
  rate(): number;
  /** Counts a request that goes, allowed or not. */
  spend(): void;
  /** The provider refused a request because there were too many. */
  refused(): void;
}

/**
 * A token bucket whose rate follows the provider: what it bore in the second before a refusal is what it bears, and less where it still refuses;
 * after two quiet seconds a quarter more is tried. Public endpoints tell nobody their limits (Arc's own bears about 2 a second).
 */
export function createAllowance(clock: Clock): Allowance {
  let rate = Number.POSITIVE_INFINITY;
  // Before the last lesson.
  let before = rate;
  let level = Number.POSITIVE_INFINITY;
  let filledMs = 0;
  let changedMs = 0;
  // Of the last second, oldest first: when requests went, and when refusals came.
  let sent: number[] = [];
  let refusals: number[] = [];

  const burst = (): number => Math.max(1, rate * BURST_SECONDS);

  function recall(now: number): void {
    const isRecent = (atMs: number) => now - atMs < SECOND_MS;
    sent = sent.filter(isRecent);
    refusals = refusals.filter(isRecent);
  }

  function grow(now: number): void {
    // A slow one is given the time of two requests: fewer would teach nothing.
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
      // More than these are never told apart.
      if (sent.length > 2 * MOST) sent = sent.slice(-MOST);
    },
    refused() {
      const now = clock.nowMs();
      refusals.push(now);
      recall(now);
      // Refusals of one second are one lesson.
      if (rate === Number.POSITIVE_INFINITY || now - changedMs >= SECOND_MS) [before, changedMs] = [rate, now];
      const borne = sent.length - refusals.length;
      // What it has just borne it bears, however often it is asked for more.
      const learned = before === Number.POSITIVE_INFINITY ? Math.max(1, borne) : Math.max(LEAST, borne, before * FEWER);
      rate = Math.min(rate, learned);
      [level, filledMs] = [0, now];
    },
  };
}
