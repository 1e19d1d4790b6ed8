import type { Clock } from '../../lib/clock.ts';
import { setNewest } from '../../lib/set-newest.ts';

/** Six blocks on Arc: a payer that puts money in waits no longer than this. */
const EMPTY_MS = 3000;
/** Payers remembered at once; past it the oldest is forgotten, which costs one place in a read. */
const MAX_PAYERS = 10_000;

/** Remembers what payers were last seen to hold, so that one that holds too little is not read again for some seconds. */
export function createEmptyPayers(clock: Clock) {
  // The longest known first.
  const seen = new Map<string, { readonly balance: bigint; readonly untilMs: number }>();

  return {
    /** For how many seconds a payer that was just seen to hold less than an amount, in USDC base units, is not read again; 0 where it may be. */
    secondsBelow(payer: string, amount: bigint): number {
      const last = seen.get(payer);
      if (!last || last.balance >= amount) return 0;
      return Math.max(0, Math.ceil((last.untilMs - clock.nowMs()) / 1000));
    },
    note(payer: string, balance: bigint): void {
      setNewest(seen, payer, { balance, untilMs: clock.nowMs() + EMPTY_MS }, MAX_PAYERS);
    },
  };
}
