import type { Client } from 'pg';

/** Resolves when somebody in this client's database waits for a lock; not from within a transaction, where the list of what others do stands still. */
export async function untilSomebodyWaits(watcher: Pick<Client, 'query'>): Promise<void> {
  const waiting =
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' LIMIT 1";
  while ((await watcher.query(waiting)).rowCount === 0) await new Promise((next) => setTimeout(next, 5));
}
