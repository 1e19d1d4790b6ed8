import type { InstancesStore } from '../instances-port.ts';
import { fixed, statement } from './statement.ts';
import type { Transact } from './transaction.ts';

/** The database's own clock, which all instances share. */
const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::BIGINT';

const SEEN = statement<{ bootId: string }>(
  `INSERT INTO instances (boot_id, seen_at) VALUES (@bootId, ${NOW}) ON CONFLICT (boot_id) DO UPDATE SET seen_at = ${NOW}`,
);
const TAKE = statement<{ bootId: string; leaseMs: number }>(
  `UPDATE instance_lease
      SET fence = CASE WHEN holder = @bootId THEN fence ELSE fence + 1 END,
          said = CASE WHEN holder = @bootId THEN said END, holder = @bootId, until = ${NOW} + @leaseMs::BIGINT
    WHERE id = 1 AND (holder = @bootId OR until <= ${NOW})
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
    beat: (bootId, leaseMs, livingMs) =>
      transact(async (run) => {
        await run(SEEN({ bootId }));
        const [lease] = await run<{ fence: number }>(TAKE({ bootId, leaseMs }));
        const [told] = await run<{ said: string | null }>(SAID);
        const all = await run<{ bootId: string; isLiving: boolean }>(ALL({ livingMs }));
        const named = (living: boolean) => all.filter(({ isLiving }) => isLiving === living).map((one) => one.bootId);
        return { fence: lease?.fence ?? null, living: named(true), dead: named(false), said: told?.said ?? null };
      }),
    say: (fence, text) => transact(async (run) => (await run(SAY({ fence, text }))).length === 1),
    bury: (bootId) =>
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
