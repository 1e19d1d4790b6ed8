import type { Sqlite } from '../sqlite/database.ts';

/** Why a probe failed. */
export const PROBE_ERRORS = ['timeout', 'rateLimited', 'rpcError', 'transport'] as const;
export type ProbeError = (typeof PROBE_ERRORS)[number];

/** What one endpoint answered in a round of probes. */
export interface Probe {
  /** Its public name, never its URL, because the path may hold a key. */
  readonly endpoint: string;
  readonly ok: boolean;
  /** Null when it failed. */
  readonly latencyMs: number | null;
  readonly head: number | null;
  readonly error: ProbeError | null;
}

/** A probe as it was stored. */
export interface StoredProbe extends Probe {
  /** Unix milliseconds. */
  readonly atMs: number;
  /** The highest head that any endpoint reported in the same round. */
  readonly bestHead: number | null;
}

/** Writer of `probes`. */
export interface ProbeWrites {
  /** Stores one round of probes and deletes these endpoints' rows from before `keepFromMs`, in one transaction. */
  record(atMs: number, probes: readonly Probe[], keepFromMs: number): void;
}

export function createProbeWrites(db: Sqlite): ProbeWrites {
  const insert = db.prepare(
    `INSERT OR REPLACE INTO probes (endpoint, at_ms, ok, latency_ms, head, best_head, error)
     VALUES (@endpoint, @atMs, @ok, @latencyMs, @head, @bestHead, @error)`,
  );
  // One endpoint at a time, because the rows are stored in that order. Those of endpoints that are no longer probed go with the hours (rollup.ts).
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

/** Reader of `probes`. */
export interface ProbeReads {
  /** Probes from `sinceMs` on (Unix milliseconds), oldest first. */
  probes(endpoint: string, sinceMs: number): StoredProbe[];
}

type Row = Omit<StoredProbe, 'ok'> & { ok: number };

export function createProbeReads(db: Sqlite): ProbeReads {
  const select = db.prepare(
    `SELECT endpoint, at_ms AS atMs, ok, latency_ms AS latencyMs, head, best_head AS bestHead, error
       FROM probes WHERE endpoint = ? AND at_ms >= ? ORDER BY at_ms`,
  );
  return {
    probes: (endpoint, sinceMs) =>
      (select.all(endpoint, sinceMs) as Row[]).map((row) => ({ ...row, ok: row.ok === 1 })),
  };
}
