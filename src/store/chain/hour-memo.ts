import { type Coverage, missingFrom, type Span } from '../../lib/coverage.ts';
import type { Sqlite } from '../sqlite/database.ts';
import { createChainFacts } from './facts.ts';

export const HOUR = 3600;
/** An hour is cached once this many blocks lie above it: no replaced block is that deep. */
const DEPTH = 128;
/** Two days, for windows that overlap. */
const MAX_HOURS = 48;

/** The stored blocks on either side of an hour, and whether every block of it was read whole. */
export interface HourFrame {
  /** The highest stored block before it; null when there is none. */
  readonly below: number | null;
  /** The lowest stored block after it; null while the hour lasts. */
  readonly above: number | null;
  readonly complete: boolean;
}

interface Kept<T> {
  readonly frame: HourFrame;
  readonly stored: string;
  readonly value: T;
}

/**
 * Computes a value from an hour's rows (`hour` is its first second), and caches it until the stored rows of the hour change.
 * A day of half-second blocks is 172,800 rows, too many to read for each answer. A past hour changes only while it is being filled.
 */
export function createHourMemo<T>(db: Sqlite, compute: (hour: number, frame: HourFrame) => T): (hour: number) => T {
  const facts = createChainFacts(db);
  const kept = new Map<number, Kept<T>>();
  const before = db.prepare('SELECT number FROM blocks WHERE at < ? ORDER BY at DESC, number DESC LIMIT 1').pluck();
  const after = db.prepare('SELECT number FROM blocks WHERE at >= ? ORDER BY at, number LIMIT 1').pluck();
  const newest = db.prepare('SELECT max(number) FROM blocks').pluck();

  function frameOf(hour: number, full: Coverage): HourFrame {
    const below = (before.get(hour) ?? null) as number | null;
    const above = (after.get(hour + HOUR) ?? null) as number | null;
    const from = below ?? (after.get(hour) as number | undefined) ?? 0;
    // Without a stored block below, only the chain's first block proves that nothing is missing.
    const begins = below !== null || from <= 1;
    return { below, above, complete: above !== null && begins && isCovered(full, { from, to: above }) };
  }

  return (hour) => {
    const [full, fees] = [facts.coverage('full'), facts.coverage('fees')];
    const known = kept.get(hour);
    if (known && known.stored === storedIn(known.frame, full, fees)) return known.value;
    const frame = frameOf(hour, full);
    const value = compute(hour, frame);
    kept.delete(hour);
    if (frame.above !== null && (newest.get() as number) >= frame.above + DEPTH) {
      kept.set(hour, { frame, stored: storedIn(frame, full, fees), value });
      const [oldest] = kept.keys();
      if (kept.size > MAX_HOURS && oldest !== undefined) kept.delete(oldest);
    }
    return value;
  };
}

function isCovered(coverage: Coverage, span: Span): boolean {
  return missingFrom(coverage, span).length === 0;
}

/** The coverage between the neighbours of an hour, as text to compare. */
function storedIn({ below, above }: HourFrame, ...kinds: Coverage[]): string {
  const span = { from: below ?? 0, to: above ?? 0 };
  return JSON.stringify(kinds.map((coverage) => missingFrom(coverage, span)));
}
