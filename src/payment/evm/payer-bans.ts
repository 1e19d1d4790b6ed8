import type { Clock } from '../../lib/clock.ts';
import { setNewest } from '../../lib/set-newest.ts';

const DAY_MS = 86_400_000;
/** More bans than gas griefers can afford. Beyond that the oldest ban is dropped. */
const MAX_BANS = 10_000;

/** When each payer's ban ends, in Unix milliseconds. The newest ban is last. */
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
 * Bans payers for a day whose settlements moved nothing or used most of their gas limit. Kept in memory: a restart drops the bans, which costs one
 * transaction for each payer.
 */
export function createPayerBans(clock: Clock) {
  const bans: Bans = new Map();
  return {
    add: (payer: string): void => ban(bans, payer, clock.nowMs()),
    has: (payer: string): boolean => isBanned(bans, payer, clock.nowMs()),
    all: (): string[] => bannedPayers(bans, clock.nowMs()),
  };
}
