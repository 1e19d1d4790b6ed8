import type { Clock } from '../../lib/clock.ts';
import { setNewest } from '../../lib/set-newest.ts';

/** Consecutive failures that open the breaker. A few random failures do not cut a source off. */
const FAILURES = 10;
/** Short, so that a source that has recovered is asked again soon, and a dead one costs one time-out in this time. */
const REST_MS = 5000;
/** The longest pause that a server can set with Retry-After, so that no server stops a route for long. */
const MAX_REST_MS = 60_000;
/** The most origins that are remembered; the oldest is dropped first. */
const MAX_ORIGINS = 1000;

interface State {
  failures: number;
  restUntilMs: number;
}

/**
 * Stops requests to an origin for five seconds after ten consecutive failures, and until the time of its Retry-After.
 * After the pause one call at a time goes through until one succeeds. It works by origin, because one dead RDAP registry says nothing about the others.
 */
export function createBreaker(clock: Clock) {
  const states = new Map<string, State>();

  function stateOf(origin: string): State {
    const state = states.get(origin) ?? { failures: 0, restUntilMs: 0 };
    setNewest(states, origin, state, MAX_ORIGINS);
    return state;
  }

  return {
    /** Whether the origin may be asked now. The first `true` after a pause is a probe: other callers get `false` until the probe has ended. */
    allows(origin: string): boolean {
      const state = states.get(origin);
      if (!state || state.restUntilMs === 0) return true;
      const now = clock.nowMs();
      if (now < state.restUntilMs) return false;
      state.restUntilMs = now + REST_MS;
      return true;
    },
    succeeded(origin: string): void {
      states.delete(origin);
    },
    /** `restMs` is the pause that the server itself has set. */
    failed(origin: string, restMs = 0): void {
      const state = stateOf(origin);
      state.failures += 1;
      const rest = Math.max(Math.min(restMs, MAX_REST_MS), state.failures >= FAILURES ? REST_MS : 0);
      if (rest > 0) state.restUntilMs = clock.nowMs() + rest;
    },
  };
}

export type Breaker = ReturnType<typeof createBreaker>;

/** Retry-After in milliseconds, given in seconds or as a date; 0 when it is neither. */
export function retryAfterMs(header: string | undefined, nowMs: number): number {
  if (header === undefined) return 0;
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1000;
  const at = Date.parse(header);
  return Number.isNaN(at) ? 0 : Math.max(0, at - nowMs);
}
