import type { Clock } from '../../lib/clock.ts';
import { setNewest } from '../../lib/set-newest.ts';

const DAY_MS = 86_400_000;
/** More than gas griefers can afford; the oldest is forgiven first. */
const MAX_BANS = 10_000;

/** Until when each payer is refused, in Unix milliseconds; the newest ban last. */
export type Bans = Map<string, number>;

/** Refuses a payer for a day from now on. */
export function ban(bans: Bans, payer: string, nowMs: number): void {
  setNewest(bans, payer, nowMs + DAY_MS, MAX_BANS);
}

export function isBanned(bans: Bans, payer: string, nowMs: number): boolean {
  return (bans.get(payer) ?? 0) > nowMs;
}

/** The payers that are refused now, the newest ban last. */
export function bannedPayers(bans: Bans, nowMs: number): string[] {
  return [...bans.keys()].filter((payer) => isBanned(bans, payer, nowMs));
}

/**
 * Payers that are not sold to for a day: their settlements moved nothing, or used up all their gas. Kept in memory: a restart forgets them, which
 * costs one transaction each.
 */
export function createPayerBans(clock: Clock) {
  const bans: Bans = new Map();
  return {
    add: (payer: string): void => ban(bans, payer, clock.nowMs()),
    has: (payer: string): boolean => isBanned(bans, payer, clock.nowMs()),
    all: (): string[] => bannedPayers(bans, clock.nowMs()),
  };
}
