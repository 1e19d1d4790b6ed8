import type { Clock } from '../../lib/clock.ts';

const DAY_MS = 86_400_000;
/** More than gas griefers can afford; the oldest is forgiven first. */
const MAX_BANS = 10_000;

/** Payers whose settlements cost us gas and moved nothing, or cost more than they may: not sold to for a day. Kept in memory, because a restart's forgiveness costs one transaction. */
export function createPayerBans(clock: Clock) {
  const until = new Map<string, number>();
  return {
    add(payer: string): void {
      until.delete(payer);
      const oldest = until.size >= MAX_BANS ? until.keys().next().value : undefined;
      if (oldest !== undefined) until.delete(oldest);
      until.set(payer, clock.nowMs() + DAY_MS);
    },
    has: (payer: string): boolean => (until.get(payer) ?? 0) > clock.nowMs(),
  };
}

export type PayerBans = ReturnType<typeof createPayerBans>;
