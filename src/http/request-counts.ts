/** Upper bounds in seconds: from a cached answer to a paid answer that waits for its settlement. */
const BUCKETS = [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const;

/** One route's counters. */
export interface RouteCounts {
  /** Adds one answer. */
  add(method: string, status: number, seconds: number): void;
  readonly answers: ReadonlyMap<string, ReadonlyMap<number, number>>;
  readonly latency: { readonly buckets: readonly number[]; readonly sum: number; readonly count: number };
}

/** The bounds in order. `latency.buckets` has a count for each, and a last one for everything slower. */
export const LATENCY_BOUNDS: readonly number[] = BUCKETS;

/** Counters of one route as plain numbers. Adding costs two look-ups; a metric with labels would hash the labels for every request. */
export function createRouteCounts(): RouteCounts {
  const answers = new Map<string, Map<number, number>>();
  const latency = { buckets: new Array<number>(BUCKETS.length + 1).fill(0), sum: 0, count: 0 };
  return {
    answers,
    latency,
    add(method, status, seconds) {
      let byStatus = answers.get(method);
      if (!byStatus) {
        byStatus = new Map();
        answers.set(method, byStatus);
      }
      byStatus.set(status, (byStatus.get(status) ?? 0) + 1);
      let at = 0;
      while (at < BUCKETS.length && seconds > (BUCKETS[at] ?? 0)) at += 1;
      latency.buckets[at] = (latency.buckets[at] ?? 0) + 1;
      latency.sum += seconds;
      latency.count += 1;
    },
  };
}
