import type { Clock } from './clock.ts';

/**
 * Shares a costly reading: callers that ask while one is under way, or within `keptMs` of its start, get its result or its failure.
 * So it is made at most once in that time, and never twice at once.
 */
export function keepReading<T>(read: () => Promise<T>, keptMs: number, clock: Clock): () => Promise<T> {
  let last: { readonly result: Promise<T>; readonly startedMs: number; isUnderWay: boolean } | null = null;

  function begin(): Promise<T> {
    const begun = { result: read(), startedMs: clock.nowMs(), isUnderWay: true };
    const end = () => {
      begun.isUnderWay = false;
    };
    begun.result.then(end, end);
    last = begun;
    return begun.result;
  }

  return () => {
    // The absolute difference, so that a clock that was set back does not keep a reading for longer.
    const isFresh = last && (last.isUnderWay || Math.abs(clock.nowMs() - last.startedMs) < keptMs);
    return last && isFresh ? last.result : begin();
  };
}
