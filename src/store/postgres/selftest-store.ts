import type { SelfTestRun, SelfTestStore } from '../ports/selftest.ts';
import type { Pools } from './pool.ts';
import { fixed, statement } from './statement.ts';
import type { WriteQueue } from './write-queue.ts';

const SELECT = `SELECT at, ok, latency_ms AS "latencyMs", transaction_hash AS "transaction", not_charged AS "notCharged", reason
                  FROM self_tests`;
const RECORD = statement<SelfTestRun>(`
  INSERT INTO self_tests (id, at, ok, latency_ms, transaction_hash, not_charged, reason)
  SELECT coalesce(max(id), 0) + 1, @at::bigint, @ok::boolean, @latencyMs::bigint, @transaction::bytea, @notCharged::boolean, @reason::text
    FROM self_tests`);
const FORGET = statement<{ keepFromMs: number }>('DELETE FROM self_tests WHERE at < @keepFromMs');
const RECENT = statement<{ limit: number }>(`${SELECT} ORDER BY at DESC, id DESC LIMIT @limit`);
const CHECKED = fixed(`${SELECT} WHERE not_charged IS NOT NULL ORDER BY at DESC, id DESC LIMIT 1`);
const COUNT = statement<{ sinceMs: number }>(
  'SELECT count(*) AS runs, count(CASE WHEN ok THEN 1 END) AS ok FROM self_tests WHERE at >= @sinceMs',
);

/** The self-test's results on PostgreSQL. */
export function createSelfTestStore({ read }: Pools, queue: WriteQueue): SelfTestStore {
  return {
    record: (run, keepFromMs) => queue.write({ statements: [RECORD(run), FORGET({ keepFromMs })], read: () => {} }),
    recent: (limit) => read<SelfTestRun>(RECENT({ limit })),
    lastChecked: async () => (await read<SelfTestRun>(CHECKED))[0] ?? null,
    countSince: async (sinceMs) =>
      (await read<{ runs: number; ok: number }>(COUNT({ sinceMs })))[0] ?? { runs: 0, ok: 0 },
  };
}
