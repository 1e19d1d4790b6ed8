import { Client } from 'pg';
import { systemClock } from '../../../src/lib/clock.ts';
import { openPostgresStores } from '../../../src/store/open-postgres.ts';
import { POSTGRES_LIMITS } from '../ledger/ledger-adapters.ts';
import { freshDatabase } from './postgres-run.ts';

/** A ledger on PostgreSQL with two further clients: `blocker` holds locks that the stores need, and `watcher` sees them wait. */
export async function openMeddled() {
  const url = await freshDatabase();
  let retries = 0;
  const stores = await openPostgresStores({
    url,
    ...POSTGRES_LIMITS,
    clock: systemClock,
    onRetry: () => void retries++,
  });
  // These are two clients, because inside a transaction pg_stat_activity does not change.
  const [blocker, watcher] = [new Client({ connectionString: url }), new Client({ connectionString: url })];
  await Promise.all([blocker.connect(), watcher.connect()]);
  return {
    url,
    stores,
    blocker,
    watcher,
    /** How often a transaction was retried. */
    retries: () => retries,
    close: async () => {
      await Promise.all([blocker.end(), watcher.end()]);
      await stores.close();
    },
  };
}

export type Meddled = Awaited<ReturnType<typeof openMeddled>>;

/** Resolves when a transaction in this client's database waits for a lock. */
export async function untilSomebodyWaits(watcher: Pick<Client, 'query'>): Promise<void> {
  const waiting =
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' LIMIT 1";
  while ((await watcher.query(waiting)).rowCount === 0) await new Promise((next) => setTimeout(next, 5));
}
