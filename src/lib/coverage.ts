/** Whole numbers, `to` included. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** A set of whole numbers: spans sorted, disjoint, no two adjacent. */
export type Coverage = readonly Span[];

export function cover(coverage: Coverage, span: Span): Coverage {
  let { from, to } = span;
  const rest: Span[] = [];
  for (const known of coverage) {
    if (known.to < from - 1 || known.from > to + 1) rest.push(known);
    else {
      from = Math.min(from, known.from);
      to = Math.max(to, known.to);
    }
  }
  return [...rest, { from, to }].sort((a, b) => a.from - b.from);
}

export function uncover(coverage: Coverage, span: Span): Coverage {
  return coverage.flatMap((known) =>
    [
      { from: known.from, to: Math.min(known.to, span.from - 1) },
      { from: Math.max(known.from, span.to + 1), to: known.to },
    ].filter(({ from, to }, side) => from <= to && (side === 0 ? known.from < span.from : known.to > span.to)),
  );
}

/** The parts of `window` that the set lacks, lowest first. */
export function missingFrom(coverage: Coverage, window: Span): Coverage {
  let missing: Coverage = window.from <= window.to ? [window] : [];
  for (const known of coverage) missing = uncover(missing, known);
  return missing;
}

/** From 0 to 1, rounded down, so that 1 means complete; `ofNothing` for an empty window. */
export function shareOf(coverage: Coverage, window: Span, ofNothing: 0 | 1): number {
  const size = window.to - window.from + 1;
  const share = size <= 0 ? ofNothing : 1 - sizeOf(missingFrom(coverage, window)) / size;
  return Math.floor(share * 10_000) / 10_000;
}

export function sizeOf(coverage: Coverage): number {
  return coverage.reduce((sum, { from, to }) => sum + to - from + 1, 0);
}
