import { Client } from 'pg';
import { expect, test, vi } from 'vitest';
import { describePostgres } from '../support/ledger/ledger-adapters.ts';
import { dropDatabases, freshDatabase, workersDatabase } from '../support/postgres/postgres-run.ts';

/** Whether the database of this URL is still there. */
async function exists(url: string): Promise<boolean> {
  const admin = new Client({ connectionString: new URL('/postgres', url).href });
  await admin.connect();
  try {
    const name = new URL(url).pathname.slice(1);
    return (await admin.query('SELECT FROM pg_database WHERE datname = $1', [name])).rowCount === 1;
  } finally {
    await admin.end();
  }
}

describePostgres('the databases of a run', () => {
  test('are dropped after their test file, except for one that has a connection, and for the worker’s own', async () => {
    const [used, unused, workers] = [await freshDatabase(), await freshDatabase('template1'), await workersDatabase()];
    const client = new Client({ connectionString: used });
    await client.connect();
    await dropDatabases();
    expect([await exists(used), await exists(unused), await exists(workers)]).toEqual([true, false, true]);
    expect((await client.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    await client.end();
    // Its connection may last for a moment longer.
    await vi.waitFor(async () => {
      await dropDatabases();
      expect(await exists(used)).toBe(false);
    }, 60_000);
    expect(await exists(workers)).toBe(true);
  });
});
