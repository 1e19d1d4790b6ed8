import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { Client } from 'pg';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { migrate } from '../../src/lib/sqlite-file.ts';
import { migratePostgres, newestVersion, stepsOf } from '../../src/store/db/migrate.ts';
import { describePostgres } from '../support/ledger/ledger-adapters.ts';
import { freshDatabase } from '../support/postgres/postgres-run.ts';

// The numbered list of steps: how it is read, and what each database makes of a step's words.

const SHIPPED = join(import.meta.dirname, '../../src/store/migrations');
const DIALECTS = ['sqlite', 'postgres'] as const;
const NEXT = newestVersion() + 1;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'percall-steps-'));
  cpSync(SHIPPED, folder, { recursive: true });
});
afterEach(() => rmSync(folder, { recursive: true }));

const plant = (sql: string, version = NEXT, name = 'planted') =>
  writeFileSync(join(folder, `${String(version).padStart(3, '0')}-${name}.sql`), sql);

const PLANTED = `-- It isn't INTEGER alone: BLOB, MONEY) STRICT;
CREATE TABLE planted (
  id      TEXT    PRIMARY KEY,
  said    TEXT    NOT NULL DEFAULT 'INTEGER, it''s MONEY) STRICT; -- BLOB',
  counted INTEGER NOT NULL,
  body    BLOB,
  paid    MONEY   CHECK (paid >= 0),
  -- only sqlite
  flag    INTEGER NOT NULL DEFAULT 0 CHECK (flag IN (0, 1)),
  -- only postgres
  flag    BOOLEAN NOT NULL DEFAULT FALSE,
  -- both
  "MONEY" TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE planted_rows (n INTEGER NOT NULL) STRICT;
CREATE TABLE planted_keys (n INTEGER PRIMARY KEY)
WITHOUT ROWID;
INSERT INTO planted_rows VALUES (1);
-- only postgres
INSERT INTO planted_rows VALUES (2);
-- only sqlite
INSERT INTO planted_rows VALUES (3);
`;
const SAID = "INTEGER, it's MONEY) STRICT; -- BLOB";

describe('a step in words of both databases', () => {
  test('is made by SQLite with MONEY as INTEGER, and its own lines', () => {
    plant(PLANTED);
    const db = new Database(':memory:');
    migrate(db, stepsOf('sqlite', folder));
    expect(db.pragma('user_version', { simple: true })).toBe(NEXT);
    const columns = db.prepare<[], [string, string]>("SELECT name, type FROM pragma_table_info('planted')").raw().all();
    expect(Object.fromEntries(columns)).toEqual({
      id: 'TEXT',
      said: 'TEXT',
      counted: 'INTEGER',
      body: 'BLOB',
      paid: 'INTEGER',
      flag: 'INTEGER',
      MONEY: 'TEXT',
    });
    const tables = db.prepare(
      "SELECT name, strict, wr FROM pragma_table_list WHERE name LIKE 'planted%' ORDER BY name",
    );
    expect(tables.raw().all()).toEqual([
      ['planted', 1, 1],
      ['planted_keys', 0, 1],
      ['planted_rows', 1, 0],
    ]);
    db.exec("INSERT INTO planted (id, counted) VALUES ('a', 1)");
    expect(db.prepare('SELECT said FROM planted').pluck().get()).toBe(SAID);
    expect(db.prepare('SELECT n FROM planted_rows').pluck().all()).toEqual([1, 3]);
    db.close();
  });

  describePostgres('on PostgreSQL', () => {
    test('is made with its types, without what SQLite says of tables, and with its own lines', async () => {
      plant(PLANTED);
      const client = new Client({ connectionString: await freshDatabase('template1') });
      await client.connect();
      const column = async (text: string) =>
        (await client.query(text)).rows.map((row: object) => Object.values(row)[0] as unknown);
      try {
        await migratePostgres(client, 'the ledger x', 1, stepsOf('postgres', folder));
        expect(await column('SELECT max(version) FROM ledger_migrations')).toEqual([String(NEXT)]);
        const columns = await column(
          `SELECT attname || ' ' || format_type(atttypid, atttypmod) FROM pg_attribute
            WHERE attrelid = 'planted'::regclass AND attnum > 0 ORDER BY attnum`,
        );
        expect(columns).toEqual([
          'id text',
          'said text',
          'counted bigint',
          'body bytea',
          'paid numeric(78,0)',
          'flag boolean',
          'MONEY text',
        ]);
        await client.query("INSERT INTO planted (id, counted) VALUES ('a', 1)");
        expect(await column('SELECT said FROM planted')).toEqual([SAID]);
        expect(await column('SELECT n FROM planted_rows ORDER BY n')).toEqual(['1', '2']);
        expect(await column('SELECT count(*) FROM planted_keys')).toEqual(['0']);
      } finally {
        await client.end();
      }
    });

    test('that is of SQLite alone is noted as done, and does nothing', async () => {
      plant('-- only sqlite\nDROP TABLE usdc_payments;\n');
      const client = new Client({ connectionString: await freshDatabase('template1') });
      await client.connect();
      try {
        await migratePostgres(client, 'the ledger x', 1, stepsOf('postgres', folder));
        const { rows } = await client.query('SELECT max(version) AS last FROM ledger_migrations');
        expect(rows).toEqual([{ last: String(NEXT) }]);
        expect((await client.query('SELECT 1 FROM usdc_payments')).rows).toEqual([]);
      } finally {
        await client.end();
      }
    });
  });
});

describe.each(DIALECTS)('the list of %s', (dialect) => {
  const released = () => join(folder, `${dialect}-001-022.sql`);

  test('begins with the released steps, each whole, and goes on with the common ones', () => {
    const versions = stepsOf(dialect).map(({ version }) => version);
    const missing = dialect === 'sqlite' ? [8, 12] : [8];
    const all = Array.from({ length: newestVersion() }, (_, at) => at + 1);
    expect(versions).toEqual(all.filter((version) => !missing.includes(version)));
    const text = stepsOf(dialect)
      .filter(({ version }) => version <= 22)
      .map(({ sql }) => sql)
      .join('');
    expect(text).toBe(readFileSync(released(), 'utf8').replaceAll(/^-- \d{3} .*\n/gm, ''));
  });

  test('is refused when the number of a step is missing', () => {
    plant('', NEXT + 1);
    expect(() => stepsOf(dialect, folder)).toThrow(`stands where migration ${NEXT} belongs`);
  });

  test('is refused when two steps have one number', () => {
    plant('');
    plant('', NEXT, 'of-another-branch');
    expect(() => stepsOf(dialect, folder)).toThrow(`stands where migration ${NEXT + 1} belongs`);
  });

  test('is refused when a step has the number of a released one', () => {
    plant('', 12);
    expect(() => stepsOf(dialect, folder)).toThrow('012-planted.sql stands where migration 23 belongs');
  });

  test('is refused when a released step is there twice, or has no number', () => {
    const text = readFileSync(released(), 'utf8');
    writeFileSync(released(), `${text}-- 022 again\n`);
    expect(() => stepsOf(dialect, folder)).toThrow('the released step 22 is there twice');
    writeFileSync(released(), `SELECT 1;\n${text}`);
    expect(() => stepsOf(dialect, folder)).toThrow('no number');
  });

  test('is refused when lines are of a database that there is not', () => {
    plant('-- only postgresql\nSELECT 1;\n');
    expect(() => stepsOf(dialect, folder)).toThrow('-- only postgresql: there is no such database');
  });
});
