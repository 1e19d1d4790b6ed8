/** How often each value was seen. */
export type Histogram = ReadonlyMap<bigint, number>;

export function countOf(histogram: Histogram): number {
  let count = 0;
  for (const seen of histogram.values()) count += seen;
  return count;
}

/** Nearest-rank, in the order of `percents`; null for an empty histogram. */
export function percentilesIn(histogram: Histogram, percents: readonly number[]): bigint[] | null {
  const total = countOf(histogram);
  if (total === 0) return null;
  const values = [...histogram.keys()].sort((a, b) => (a < b ? -1 : 1));
  return percents.map((percent) => {
    let rank = Math.max(Math.ceil((percent / 100) * total), 1);
    const found = values.find((value) => {
      rank -= histogram.get(value) ?? 0;
      return rank <= 0;
    });
    return found ?? 0n;
  });
}

/** Nearest-rank; null for an empty list. */
export function percentileOf(values: readonly number[], percent: number): number | null {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(Math.ceil((percent / 100) * sorted.length), 1) - 1] ?? null;
}
