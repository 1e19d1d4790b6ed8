import { Client } from 'pg';
import { systemClock } from '../../../src/lib/clock.ts';
import { openPostgresStores } from '../../../src/store/postgres/open-stores.ts';
import { POSTGRES_LIMITS } from '../ledger/ledger-adapters.ts';
import { freshDatabase } from './postgres-run.ts';

/** A ledger on PostgreSQL, and two who meddle: a stranger who holds what the stores want, and a watcher who sees them wait. */
export async function openMeddled() {
  const url = await freshDatabase();
  let retries = 0;
  const stores = await openPostgresStores({
    ...{ url, ...POSTGRES_LIMITS, clock: systemClock },
    onRetry: () => void retries++,
  });
  // Not one for both: within a transaction the list of what others do stands still.
  const [stranger, watcher] = [new Client({ connectionString: url }), new Client({ connectionString: url })];
  await Promise.all([stranger.connect(), watcher.connect()]);
  return {
    url,
    stores,
    stranger,
    watcher,
    /** How often a transaction was run anew. */
    retries: () => retries,
    close: async () => {
      await Promise.all([stranger.end(), watcher.end()]);
      await stores.close();
    },
  };
}

export type Meddled = Awaited<ReturnType<typeof openMeddled>>;

/** Resolves when somebody in this client's database waits for a lock. */
export async function untilSomebodyWaits(watcher: Pick<Client, 'query'>): Promise<void> {
  const waiting =
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' LIMIT 1";
  while ((await watcher.query(waiting)).rowCount === 0) await new Promise((next) => setTimeout(next, 5));
}
