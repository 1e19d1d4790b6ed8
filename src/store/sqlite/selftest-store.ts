import type { Sqlite } from '../../lib/sqlite-file.ts';
import type { SelfTestRun, SelfTestStore } from '../ports/selftest.ts';

interface Row {
  readonly at: number;
  readonly ok: number;
  readonly latencyMs: number | null;
  readonly transaction: Uint8Array | null;
  readonly notCharged: number | null;
  readonly reason: string | null;
}

const SELECT = `SELECT at, ok, latency_ms AS latencyMs, transaction_hash AS "transaction", not_charged AS notCharged, reason
                  FROM self_tests`;
const NEWEST_FIRST = 'ORDER BY at DESC, id DESC LIMIT ?';

/** The self-test's results on the ledger's database. */
export function createSelfTestStore(db: Sqlite): SelfTestStore {
  const insert = db.prepare(
    `INSERT INTO self_tests (at, ok, latency_ms, transaction_hash, not_charged, reason)
     VALUES (@at, @ok, @latencyMs, @transaction, @notCharged, @reason)`,
  );
  const forget = db.prepare('DELETE FROM self_tests WHERE at < ?');
  const recent = db.prepare<[number], Row>(`${SELECT} ${NEWEST_FIRST}`);
  const checked = db.prepare<[number], Row>(`${SELECT} WHERE not_charged IS NOT NULL ${NEWEST_FIRST}`);
  const count = db.prepare<[number], { runs: number; ok: number }>(
    'SELECT count(*) AS runs, coalesce(sum(ok), 0) AS ok FROM self_tests WHERE at >= ?',
  );
  const record = db.transaction((run: SelfTestRun, keepFromMs: number) => {
    const { ok, notCharged } = run;
    insert.run({ ...run, ok: Number(ok), notCharged: notCharged === null ? null : Number(notCharged) });
    forget.run(keepFromMs);
  });

  return {
    record: async (run, keepFromMs) => void record.immediate(run, keepFromMs),
    recent: async (limit) => recent.all(limit).map(fromRow),
    lastChecked: async () => checked.all(1).map(fromRow)[0] ?? null,
    countSince: async (sinceMs) => count.get(sinceMs) ?? { runs: 0, ok: 0 },
  };
}

function fromRow(row: Row): SelfTestRun {
  const { ok, notCharged } = row;
  return { ...row, ok: ok === 1, notCharged: notCharged === null ? null : notCharged === 1 };
}
