import type { Clock } from '../../lib/clock.ts';

/** A buyer's own question is looked into this often. */
const FOR_BUYER_MS = 1000;
/** Without a buyer the pauses double, from this to that: what the evidence does not tell now it will rarely tell in a second. */
const FIRST_MS = 1000;
const LONGEST_MS = 60_000;

/**
 * When a row without an end may be looked at again. A look costs requests to the chain, so neither a buyer who asks without pause nor many old
 * rows may have more than their share. One entry a row that was looked at and has not ended.
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
