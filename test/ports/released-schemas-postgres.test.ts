import { Client } from 'pg';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RELEASED } from '../../scripts/lib/schemas/released.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { newestVersion } from '../../src/store/db/migrate.ts';
import { openInstances } from '../../src/store/instances.ts';
import { openPostgresStores } from '../../src/store/open-postgres.ts';
import { describePostgres, POSTGRES_LIMITS } from '../support/ledger/ledger-adapters.ts';
import { dumpOf } from '../support/ledger/released-fixtures.ts';
import { expectOthers, expectPayments, expectPromises, expectProofs } from '../support/ledger/released-ledger.ts';
import { freshDatabase } from '../support/postgres/postgres-run.ts';
import { quiet } from '../support/quiet.ts';
import { patient } from './unless-late.ts';

const ON_POSTGRES = RELEASED.filter(({ database }) => database === 'postgres');
const NEWEST = newestVersion();

/** All that a schema is made of, but for the order of columns, in which migrations of two branches may have come. */
const PARTS = [
  `SELECT table_name, column_name, data_type, is_nullable, column_default, is_identity
     FROM information_schema.columns WHERE table_schema = 'public'`,
  "SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'public'",
  `SELECT conrelid::regclass::text AS name, conname, pg_get_constraintdef(oid) AS text
     FROM pg_constraint WHERE connamespace = 'public'::regnamespace`,
  'SELECT tgrelid::regclass::text AS name, tgname, pg_get_triggerdef(oid) AS text FROM pg_trigger WHERE NOT tgisinternal',
  `SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace`,
  `SELECT version FROM ledger_migrations`,
];

async function schemaOf(url: string): Promise<string[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const lines: string[] = [];
    for (const part of PARTS) lines.push(...(await client.query(part)).rows.map((row) => JSON.stringify(row)));
    return lines.sort();
  } finally {
    await client.end();
  }
}

describePostgres('on PostgreSQL', () => {
  describe.each(ON_POSTGRES)('a ledger of version $version, made by $commit', (schema) => {
    let url: string;
    beforeEach(async () => {
      url = await freshDatabase('template1');
      const client = new Client({ connectionString: url });
      await client.connect();
      await client.query(dumpOf(schema));
      await client.end();
    });
    let opened: Awaited<ReturnType<typeof openPostgresStores>> | null = null;
    afterEach(async () => {
      await opened?.close();
      opened = null;
    });
    const open = async () => {
      opened = await openPostgresStores({ url, ...POSTGRES_LIMITS, clock: systemClock });
      return opened;
    };

    test('is brought to the schema that a new ledger has, with every row of then', async () => {
      const stores = await open();
      const [migrated, fresh] = [await schemaOf(url), await schemaOf(await freshDatabase())];
      expect(fresh.length).toBeGreaterThan(200);
      expect(migrated).toEqual(fresh);
      await expectPayments(stores, schema.version);
      await expectOthers(stores, schema.version);
      await expectProofs(stores, schema.version);
    });

    test('is refused while an instance of then runs on it, unless it may run beside this program, and then keeps its promises', async () => {
      const client = new Client({ connectionString: url });
      await client.connect();
      const alive = `UPDATE instances SET seen_at = (SELECT CAST(extract(epoch FROM now()) * 1000 AS BIGINT))`;
      await client.query(alive);
      if (schema.version >= 18) await open();
      else
        await expect(open()).rejects.toThrow(
          new RegExp(
            `is of version ${schema.version}, and instances of that program run on it \\(1\\): stop them first`,
          ),
        );
      const { rows } = await client.query('SELECT max(version) AS last FROM ledger_migrations');
      expect(Number(rows[0].last) > schema.version).toBe(schema.version >= 18 && schema.version < NEWEST);
      // Once it has been silent for long enough, it is dead, and the ledger is migrated.
      await client.query('UPDATE instances SET seen_at = seen_at - 15001');
      await client.end();
      await opened?.close();
      const stores = await open();
      const share = openInstances({ clock: systemClock, log: quiet }, url, 5000);
      const standing = await patient(share.store).heartbeat('boot-of-today', 6000, 15_000);
      expect(standing).toMatchObject({ living: ['boot-of-today'], dead: ['boot-of-then'] });
      await share.close();
      await expectPromises(stores, schema.version);
    });
  });
});
