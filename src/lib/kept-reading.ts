import type { Clock } from './clock.ts';

/**
 * Makes a costly reading cheap to ask for: callers that ask while one is under way, or within `keptMs` of its beginning, share its result or its
 * failure. So it is made at most once in that time, and never twice at once, however often it is asked for.
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
    // Also backwards: a clock that was set back must not keep a reading until it has caught up.
    const isFresh = last && (last.isUnderWay || Math.abs(clock.nowMs() - last.startedMs) < keptMs);
    return last && isFresh ? last.result : begin();
  };
}
