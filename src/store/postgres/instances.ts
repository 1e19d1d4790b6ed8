import type { InstancesStore } from '../ports/instances.ts';
import { NOW } from './database-clock.ts';
import { fixed, statement } from './statement.ts';
import type { Transact } from './transaction.ts';

const NOTE_SEEN = statement<{ bootId: string }>(
  `INSERT INTO instances (boot_id, seen_at) VALUES (@bootId, ${NOW}) ON CONFLICT (boot_id) DO UPDATE SET seen_at = ${NOW}`,
);
const RENEW = statement<{ bootId: string; leaseMs: number }>(
  `UPDATE instance_lease SET until = ${NOW} + @leaseMs::BIGINT WHERE id = 1 AND holder = @bootId RETURNING fence`,
);
// The transaction that notes a broadcast under a fencing token locks the lease's row by its key until the note is on disk. A renewal does not change
// the key, so it does not wait. Another instance takes the lease only when the row is not locked. When a heartbeat finds it locked, it goes on
// without the lease, and the next heartbeat comes in a second.
const TAKE = statement<{ bootId: string; leaseMs: number }>(
  `UPDATE instance_lease SET fence = fence + 1, said = NULL, holder = @bootId, until = ${NOW} + @leaseMs::BIGINT
    WHERE id = (SELECT id FROM instance_lease WHERE id = 1 AND until <= ${NOW} FOR UPDATE SKIP LOCKED)
    RETURNING fence`,
);
const REPORTED = fixed(`SELECT said FROM instance_lease WHERE id = 1 AND until > ${NOW}`);
const ALL = statement<{ livingMs: number }>(
  `SELECT boot_id AS "bootId", seen_at > ${NOW} - @livingMs::BIGINT AS "isLiving" FROM instances`,
);
const REPORT = statement<{ fencingToken: number; text: string }>(
  `UPDATE instance_lease SET said = @text WHERE id = 1 AND fence = @fencingToken AND until > ${NOW} RETURNING id`,
);
const MARK_DEAD = statement<{ bootId: string }>('UPDATE instances SET seen_at = 0 WHERE boot_id = @bootId');
const FORGET = statement<{ bootId: string }>('DELETE FROM instances WHERE boot_id = @bootId');
const RESIGN = statement<{ bootId: string }>(
  'UPDATE instance_lease SET until = 0, said = NULL WHERE id = 1 AND holder = @bootId',
);

/** The instances' store on PostgreSQL: one row for each, and one for the lease. */
export function createInstancesStore(transact: Transact): InstancesStore {
  return {
    heartbeat: (bootId, leaseMs, livingMs) =>
      transact(async (run) => {
        await run(NOTE_SEEN({ bootId }));
        const [own] = await run<{ fence: number }>(RENEW({ bootId, leaseMs }));
        const [lease] = own ? [own] : await run<{ fence: number }>(TAKE({ bootId, leaseMs }));
        const [leader] = await run<{ said: string | null }>(REPORTED);
        const all = await run<{ bootId: string; isLiving: boolean }>(ALL({ livingMs }));
        const named = (living: boolean) => all.filter(({ isLiving }) => isLiving === living).map((one) => one.bootId);
        return {
          fencingToken: lease?.fence ?? null,
          living: named(true),
          dead: named(false),
          reported: leader?.said ?? null,
        };
      }),
    report: (fencingToken, text) => transact(async (run) => (await run(REPORT({ fencingToken, text }))).length === 1),
    markDead: (bootId) =>
      transact(async (run) => {
        await run(RESIGN({ bootId }));
        await run(MARK_DEAD({ bootId }));
      }),
    forget: (bootId) => transact(async (run) => void (await run(FORGET({ bootId })))),
    leave: (bootId) =>
      transact(async (run) => {
        await run(RESIGN({ bootId }));
        await run(FORGET({ bootId }));
      }),
  };
}
