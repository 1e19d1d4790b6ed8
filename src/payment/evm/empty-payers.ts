import type { Clock } from '../../lib/clock.ts';
import { setNewest } from '../../lib/set-newest.ts';

/** In milliseconds: six blocks on Arc. A payer that receives money waits no longer than this. */
const EMPTY_MS = 3000;
/** Payers remembered at once. Beyond that the oldest is forgotten, which costs one place in a shared read. */
const MAX_PAYERS = 10_000;

/** Remembers payers' balances. A payer whose balance is too low is not read again for some seconds. */
export function createEmptyPayers(clock: Clock) {
  // Oldest entry first.
  const seen = new Map<string, { readonly balance: bigint; readonly untilMs: number }>();

  return {
    /** Seconds for which a payer is not read again, because its balance was just below `amount` (USDC base units). 0 when it may be read. */
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
