import type { Sqlite } from '../sqlite/database.ts';
import type { ProbeError } from './probe-store.ts';

/** How many probes of a time span were made and answered, and the last one that was not. */
export interface ProbeTally {
  readonly probes: number;
  readonly answered: number;
  readonly lastFailure: { readonly atMs: number; readonly error: ProbeError } | null;
}

/** Counter of `probes`. */
export interface ProbeTallies {
  /** The probes of an endpoint from `sinceMs` up to `untilMs`, both included, in Unix milliseconds. */
  probeTally(endpoint: string, sinceMs: number, untilMs: number): ProbeTally;
}

const HOUR_MS = 3_600_000;
/** An hour is kept once it is over for this long: no probe of it is still to be stored. */
const SETTLED_MS = 60_000;
/** A day of hours for some twenty endpoints. */
const MAX_KEPT = 500;

interface Row {
  readonly probes: number;
  readonly answered: number;
  readonly failedAtMs: number | null;
}

/**
 * Counts probes. A day of one endpoint is some seventeen thousand rows, too many to read for each answer. So the counts of past whole hours are
 * kept: their rows do not change until they are deleted, a day later.
 */
export function createProbeTallies(db: Sqlite): ProbeTallies {
  const count = db.prepare(
    `SELECT count(*) AS probes, coalesce(sum(ok), 0) AS answered, max(CASE WHEN ok = 0 THEN at_ms END) AS failedAtMs
       FROM probes WHERE endpoint = ? AND at_ms BETWEEN ? AND ?`,
  );
  const errorAt = db.prepare('SELECT error FROM probes WHERE endpoint = ? AND at_ms = ?').pluck();
  const kept = new Map<string, Row>();

  function ofHour(endpoint: string, from: number): Row {
    const key = `${from} ${endpoint}`;
    const known = kept.get(key) ?? (count.get(endpoint, from, from + HOUR_MS - 1) as Row);
    kept.set(key, known);
    const [oldest] = kept.keys();
    if (kept.size > MAX_KEPT && oldest !== undefined) kept.delete(oldest);
    return known;
  }

  function probeTally(endpoint: string, sinceMs: number, untilMs: number): ProbeTally {
    const rows: Row[] = [];
    for (let from = sinceMs; from <= untilMs; ) {
      const to = Math.min((Math.floor(from / HOUR_MS) + 1) * HOUR_MS - 1, untilMs);
      const isWhole = from % HOUR_MS === 0 && to + 1 - from === HOUR_MS && to + SETTLED_MS < untilMs;
      rows.push(isWhole ? ofHour(endpoint, from) : (count.get(endpoint, from, to) as Row));
      from = to + 1;
    }
    const failedAtMs = rows.map((row) => row.failedAtMs).findLast((atMs) => atMs !== null) ?? null;
    const error = failedAtMs === null ? null : ((errorAt.get(endpoint, failedAtMs) ?? null) as ProbeError | null);
    return {
      probes: rows.reduce((sum, row) => sum + row.probes, 0),
      answered: rows.reduce((sum, row) => sum + row.answered, 0),
      lastFailure: failedAtMs === null || error === null ? null : { atMs: failedAtMs, error },
    };
  }

  return { probeTally };
}
