import type { OsvEvent } from './osv-record.ts';
import type { CompareVersions } from './versions.ts';

/** The versions from `introduced` on, up to `fixed` (exclusive) or `lastAffected` (inclusive). */
export interface AffectedRange {
  /** null: from the first version on. */
  readonly introduced: string | null;
  /** null: no fix is known. */
  readonly fixed: string | null;
  /** The last affected version, where the record states that instead of a fix. */
  readonly lastAffected: string | null;
}

/** OSV's name for the very first version. It comes before every version, such as 0.0.0-alpha. */
const FIRST = '0';

/** The ranges that OSV's events describe, ascending where their versions can be compared, else in the given order. */
export function rangesOf(events: readonly OsvEvent[], compare: CompareVersions): AffectedRange[] {
  const order = orderOf(compare);
  const marks = events.map((event) => ({ event, at: event.fixed ?? event.last_affected ?? event.introduced ?? FIRST }));
  if (marks.every(({ at }) => order(at, at) === 0)) marks.sort((a, b) => order(a.at, b.at) ?? 0);
  const ranges: AffectedRange[] = [];
  let open: string | null = null;
  for (const { event } of marks) {
    if (event.introduced !== undefined) open ??= event.introduced;
    if (open === null || (event.fixed === undefined && event.last_affected === undefined)) continue;
    ranges.push({ introduced: shown(open), fixed: event.fixed ?? null, lastAffected: event.last_affected ?? null });
    open = null;
  }
  if (open !== null) ranges.push({ introduced: shown(open), fixed: null, lastAffected: null });
  return ranges;
}

/** Whether a range holds the version; null when their order is unknown. */
export function holds(range: AffectedRange, version: string, compare: CompareVersions): boolean | null {
  const order = orderOf(compare);
  const sides = [order(range.introduced ?? FIRST, version), to(range.fixed), to(range.lastAffected)];
  function to(end: string | null): number | null {
    return end === null ? 1 : order(end, version);
  }
  const [begin = null, fixed = null, last = null] = sides;
  if (begin === null || fixed === null || last === null) return null;
  return begin <= 0 && fixed > 0 && last >= 0;
}

function shown(introduced: string): string | null {
  return introduced === FIRST ? null : introduced;
}

/** Compares two versions of OSV's events: its first version comes before all others, the rest by the ecosystem's rules. */
export function orderOf(compare: CompareVersions): CompareVersions {
  return (a, b) => (a === FIRST ? -Number(b !== FIRST) : b === FIRST ? 1 : compare(a, b));
}
