import type { Clock } from '../../lib/clock.ts';
import { setNewest } from '../../lib/set-newest.ts';

/** Enough that a handful of unlucky calls does not cut a source off. */
const FAILURES = 10;
/** Short: a source that is back is asked again soon, and a dead one costs a time-out only so often. */
const REST_MS = 5000;
/** The longest rest that a server can ask for with Retry-After; a larger value would put us out of business. */
const MAX_REST_MS = 60_000;
/** Origins remembered; past it the oldest is forgotten. */
const MAX_ORIGINS = 1000;

interface State {
  failures: number;
  restUntilMs: number;
}

/**
 * Stops asking an origin that has failed ten times running, for five seconds, and one that named a time in Retry-After until then.
 * After the rest one call at a time goes through until one succeeds. By origin, because one RDAP registry that is down says nothing about the others.
 */
export function createBreaker(clock: Clock) {
  const states = new Map<string, State>();

  function stateOf(origin: string): State {
    const state = states.get(origin) ?? { failures: 0, restUntilMs: 0 };
    setNewest(states, origin, state, MAX_ORIGINS);
    return state;
  }

  return {
    /** Whether the origin may be asked now. A yes after a rest is a probe: the next caller gets a no until it is known how it went. */
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
    /** `restMs` is what the server itself asked for. */
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
