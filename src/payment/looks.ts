import type { Clock } from '../lib/clock.ts';

/** Shortest time between two lookups that a buyer causes, in milliseconds: two blocks on Arc. */
const FOR_BUYER_MS = 1000;
/**
 * Without a buyer, the pause between two lookups doubles from FIRST_MS to a longest pause, LONGEST_MS by default. Evidence that is missing now is rarely
 * there a second later.
 */
const FIRST_MS = 1000;
const LONGEST_MS = 60_000;
/** Lookups of a row that are as urgent as a new settlement. A row without an end after these is rarely decided by the next. */
const URGENT = 2;

/**
 * Decides when an open row may be looked up again. Each lookup costs requests to the chain. So this bounds the cost of a buyer that asks without
 * pause, and of many old rows. Holds one entry for each open row that was looked up.
 */
export function createLooks(clock: Clock, longestMs = LONGEST_MS) {
  const looks = new Map<string, { times: number; lastMs: number }>();

  const sinceMs = (id: string): number => clock.nowMs() - (looks.get(id)?.lastMs ?? Number.NEGATIVE_INFINITY);
  const pauseMs = (id: string): number => Math.min(longestMs, FIRST_MS * 2 ** ((looks.get(id)?.times ?? 1) - 1));

  return {
    /** Notes a lookup. Removes the row's entry when the row has ended. */
    note(id: string, hasEnded: boolean): void {
      const times = (looks.get(id)?.times ?? 0) + 1;
      looks.delete(id);
      if (!hasEnded) looks.set(id, { times, lastMs: clock.nowMs() });
      forgetOld();
    },
    isDue: (id: string): boolean => sinceMs(id) >= pauseMs(id),
    /** Whether a row was looked up so often without an end that new settlements go first. */
    isRepeated: (id: string): boolean => (looks.get(id)?.times ?? 0) >= URGENT,
    isDueForBuyer: (id: string): boolean => sinceMs(id) >= FOR_BUYER_MS,
  };

  /** Removes the entries of rows that another process has ended. This process never looks them up again. */
  function forgetOld(): void {
    for (const [id, { lastMs }] of looks) {
      if (clock.nowMs() - lastMs < 4 * longestMs) return;
      looks.delete(id);
    }
  }
}

export type Looks = ReturnType<typeof createLooks>;
