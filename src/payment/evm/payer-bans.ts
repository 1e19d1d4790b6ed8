import type { Clock } from '../../lib/clock.ts';
import { setNewest } from '../../lib/set-newest.ts';

const DAY_MS = 86_400_000;
/** More than gas griefers can afford; the oldest is forgiven first. */
const MAX_BANS = 10_000;

/**
 * Payers that are not sold to for a day: their settlements moved nothing, or used up all their gas. Kept in memory: a restart forgets them, which
 * costs one transaction each.
 */
export function createPayerBans(clock: Clock) {
  const until = new Map<string, number>();
  return {
    add(payer: string): void {
      setNewest(until, payer, clock.nowMs() + DAY_MS, MAX_BANS);
    },
    has: (payer: string): boolean => (until.get(payer) ?? 0) > clock.nowMs(),
  };
}

export type PayerBans = ReturnType<typeof createPayerBans>;
