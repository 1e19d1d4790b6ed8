import type { InstancesStore } from '../ports/instances.ts';
import { NOW } from './database-clock.ts';
import { fixed, statement } from './statement.ts';
import type { Transact } from './transaction.ts';

const SEEN = statement<{ bootId: string }>(
  `INSERT INTO instances (boot_id, seen_at) VALUES (@bootId, ${NOW}) ON CONFLICT (boot_id) DO UPDATE SET seen_at = ${NOW}`,
);
const RENEW = statement<{ bootId: string; leaseMs: number }>(
  `UPDATE instance_lease SET until = ${NOW} + @leaseMs::BIGINT WHERE id = 1 AND holder = @bootId RETURNING fence`,
);
// Whoever notes a broadcast under the lease's number holds the row by its key until that is on disk. A renewal leaves the key alone and waits for
// nobody; the lease changes hands only where nobody holds it so, and a beat that finds it held goes on without: the next one comes in a second.
const TAKE = statement<{ bootId: string; leaseMs: number }>(
  `UPDATE instance_lease SET fence = fence + 1, said = NULL, holder = @bootId, until = ${NOW} + @leaseMs::BIGINT
    WHERE id = (SELECT id FROM instance_lease WHERE id = 1 AND until <= ${NOW} FOR UPDATE SKIP LOCKED)
    RETURNING fence`,
);
const SAID = fixed(`SELECT said FROM instance_lease WHERE id = 1 AND until > ${NOW}`);
const ALL = statement<{ livingMs: number }>(
  `SELECT boot_id AS "bootId", seen_at > ${NOW} - @livingMs::BIGINT AS "isLiving" FROM instances`,
);
const SAY = statement<{ fence: number; text: string }>(
  `UPDATE instance_lease SET said = @text WHERE id = 1 AND fence = @fence AND until > ${NOW} RETURNING id`,
);
const GONE = statement<{ bootId: string }>('UPDATE instances SET seen_at = 0 WHERE boot_id = @bootId');
const FORGET = statement<{ bootId: string }>('DELETE FROM instances WHERE boot_id = @bootId');
const RESIGN = statement<{ bootId: string }>(
  'UPDATE instance_lease SET until = 0, said = NULL WHERE id = 1 AND holder = @bootId',
);

/** The instances' store on PostgreSQL: one row for each, and one for the lease. */
export function createInstancesStore(transact: Transact): InstancesStore {
  return {
    heartbeat: (bootId, leaseMs, livingMs) =>
      transact(async (run) => {
        await run(SEEN({ bootId }));
        const [own] = await run<{ fence: number }>(RENEW({ bootId, leaseMs }));
        const [lease] = own ? [own] : await run<{ fence: number }>(TAKE({ bootId, leaseMs }));
        const [told] = await run<{ said: string | null }>(SAID);
        const all = await run<{ bootId: string; isLiving: boolean }>(ALL({ livingMs }));
        const named = (living: boolean) => all.filter(({ isLiving }) => isLiving === living).map((one) => one.bootId);
        return {
          fencingToken: lease?.fence ?? null,
          living: named(true),
          dead: named(false),
          reported: told?.said ?? null,
        };
      }),
    report: (fence, text) => transact(async (run) => (await run(SAY({ fence, text }))).length === 1),
    markDead: (bootId) =>
      transact(async (run) => {
        await run(RESIGN({ bootId }));
        await run(GONE({ bootId }));
      }),
    forget: (bootId) => transact(async (run) => void (await run(FORGET({ bootId })))),
    leave: (bootId) =>
      transact(async (run) => {
        await run(RESIGN({ bootId }));
        await run(FORGET({ bootId }));
      }),
  };
}
