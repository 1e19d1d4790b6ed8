import type { Clock } from '../lib/clock.ts';

/** A buyer's question leads to a look at most once in this time, in milliseconds: two blocks on Arc. */
const FOR_BUYER_MS = 1000;
/** Without a buyer the pauses double, from FIRST_MS to LONGEST_MS: evidence that is missing now is rarely there a second later. */
const FIRST_MS = 1000;
const LONGEST_MS = 60_000;

/**
 * When a row without an end may be looked at again. Each look costs requests to the chain, so this bounds a buyer that asks without pause, and many
 * old rows. Holds one entry for each row that was looked at and has not ended.
 */
export function createLooks(clock: Clock) {
  const looks = new Map<string, { times: number; lastMs: number }>();

  const sinceMs = (id: string): number => clock.nowMs() - (looks.get(id)?.lastMs ?? Number.NEGATIVE_INFINITY);
  const pauseMs = (id: string): number => Math.min(LONGEST_MS, FIRST_MS * 2 ** ((looks.get(id)?.times ?? 1) - 1));

  return {
    /** Notes how a look ended; a row that has ended is forgotten. */
    note(id: string, hasEnded: boolean): void {
      const times = (looks.get(id)?.times ?? 0) + 1;
      looks.delete(id);
      if (!hasEnded) looks.set(id, { times, lastMs: clock.nowMs() });
      forgetOld();
    },
    isDue: (id: string): boolean => sinceMs(id) >= pauseMs(id),
    isDueForBuyer: (id: string): boolean => sinceMs(id) >= FOR_BUYER_MS,
  };

  /** Rows whose end another process wrote are never looked at again. */
  function forgetOld(): void {
    for (const [id, { lastMs }] of looks) {
      if (clock.nowMs() - lastMs < 4 * LONGEST_MS) return;
      looks.delete(id);
    }
  }
}

export type Looks = ReturnType<typeof createLooks>;
