import { boundedMap } from '../../lib/limits/count.ts';
import type { Sqlite } from '../../lib/sqlite-file.ts';

// Probes of RPC endpoints. Times are Unix milliseconds.

export const PROBE_ERRORS = ['timeout', 'rateLimited', 'rpcError', 'transport'] as const;
export type ProbeError = (typeof PROBE_ERRORS)[number];

export interface Probe {
  /** Its public name, never its URL: the path may hold a key. */
  readonly endpoint: string;
  readonly ok: boolean;
  readonly latencyMs: number | null;
  readonly head: number | null;
  readonly error: ProbeError | null;
}

export interface StoredProbe extends Probe {
  readonly atMs: number;
  /** The round's highest head. */
  readonly bestHead: number | null;
}

export interface ProbeWrites {
  /** In one transaction, with the deletion of these endpoints' rows from before `keepFromMs`. */
  record(atMs: number, probes: readonly Probe[], keepFromMs: number): void;
}

export function createProbeWrites(db: Sqlite): ProbeWrites {
  const insert = db.prepare(
    `INSERT OR REPLACE INTO probes (endpoint, at_ms, ok, latency_ms, head, best_head, error)
     VALUES (@endpoint, @atMs, @ok, @latencyMs, @head, @bestHead, @error)`,
  );
  // By endpoint, in the rows' order. Rows of endpoints no longer probed go with the hours.
  const prune = db.prepare('DELETE FROM probes WHERE endpoint = ? AND at_ms < ?');
  const record = db.transaction((atMs: number, probes: readonly Probe[], keepFromMs: number) => {
    const heads = probes.flatMap(({ head }) => head ?? []);
    const bestHead = heads.length > 0 ? Math.max(...heads) : null;
    for (const probe of probes) {
      insert.run({ ...probe, ok: probe.ok ? 1 : 0, atMs, bestHead });
      prune.run(probe.endpoint, keepFromMs);
    }
  });
  return { record: (atMs, probes, keepFromMs) => void record.immediate(atMs, probes, keepFromMs) };
}

export interface ProbeReads {
  /** From `sinceMs` on, oldest first. */
  probes(endpoint: string, sinceMs: number): StoredProbe[];
}

type ProbeRow = Omit<StoredProbe, 'ok'> & { ok: number };

export function createProbeReads(db: Sqlite): ProbeReads {
  const select = db.prepare(
    `SELECT endpoint, at_ms AS atMs, ok, latency_ms AS latencyMs, head, best_head AS bestHead, error
       FROM probes WHERE endpoint = ? AND at_ms >= ? ORDER BY at_ms`,
  );
  return {
    probes: (endpoint, sinceMs) =>
      (select.all(endpoint, sinceMs) as ProbeRow[]).map((row) => ({ ...row, ok: row.ok === 1 })),
  };
}

export interface ProbeTally {
  readonly probes: number;
  readonly answered: number;
  readonly lastFailure: { readonly atMs: number; readonly error: ProbeError } | null;
}

export interface ProbeTallies {
  /** `untilMs` included. */
  probeTally(endpoint: string, sinceMs: number, untilMs: number): ProbeTally;
}

const HOUR_MS = 3_600_000;
/** After an hour's end no probe of it is stored later. */
const SETTLED_MS = 60_000;
/** A day of hours for some twenty endpoints. */
const MAX_KEPT = 500;

interface TallyRow {
  readonly probes: number;
  readonly answered: number;
  readonly failedAtMs: number | null;
}

/** Keeps the counts of past hours: a day of one endpoint is some 17,000 rows, too many to read each time. */
export function createProbeTallies(db: Sqlite): ProbeTallies {
  const count = db.prepare(
    `SELECT count(*) AS probes, coalesce(sum(ok), 0) AS answered, max(CASE WHEN ok = 0 THEN at_ms END) AS failedAtMs
       FROM probes WHERE endpoint = ? AND at_ms BETWEEN ? AND ?`,
  );
  const errorAt = db.prepare('SELECT error FROM probes WHERE endpoint = ? AND at_ms = ?').pluck();
  const kept = boundedMap<string, TallyRow>(MAX_KEPT);

  function ofHour(endpoint: string, from: number): TallyRow {
    const key = `${from} ${endpoint}`;
    const known = kept.peek(key) ?? (count.get(endpoint, from, from + HOUR_MS - 1) as TallyRow);
    kept.set(key, known);
    return known;
  }

  function probeTally(endpoint: string, sinceMs: number, untilMs: number): ProbeTally {
    const rows: TallyRow[] = [];
    for (let from = sinceMs; from <= untilMs; ) {
      const to = Math.min((Math.floor(from / HOUR_MS) + 1) * HOUR_MS - 1, untilMs);
      const isWhole = from % HOUR_MS === 0 && to + 1 - from === HOUR_MS && to + SETTLED_MS < untilMs;
      rows.push(isWhole ? ofHour(endpoint, from) : (count.get(endpoint, from, to) as TallyRow));
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
