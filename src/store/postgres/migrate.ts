import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, DatabaseError } from 'pg';
import { readMigrations } from '../../lib/sqlite-file.ts';
import { asLedgerError } from '../db/connections.ts';
import { countLivingInstances } from './living-instances.ts';

const MIGRATIONS = join(import.meta.dirname, 'migrations');
/** SQLSTATEs of a lost race: another instance has created the table, its type or the version's row, or the transactions conflicted. */
const RACED = new Set(['23505', '42P07', '42710', '40001', '40P01']);
/** The most lost races. In each, another instance has done a step. */
const MAX_RACES = 50;

/**
 * The oldest schema whose instances may run beside this program: those write rows that this program understands, and take no row of it for another. Raise
 * it with a migration that they cannot work with. `test/crash/rolling-upgrade.test.ts` runs both on one ledger.
 */
const OLDEST_BESIDE = 18;
/** SQLSTATE of a table that does not exist. */
const NO_TABLE = '42P01';

const VERSIONS = `CREATE TABLE IF NOT EXISTS ledger_migrations (
  version    BIGINT PRIMARY KEY,
  applied_at BIGINT NOT NULL
)`;

interface MigrateOptions {
  readonly url: string;
  readonly connectTimeoutMs: number;
  /** The ledger's name in error messages, without a password. */
  readonly name: string;
  readonly nowMs: number;
  readonly directory?: string;
}

/**
 * Applies the numbered files that this database lacks. Each is one transaction that begins with the version's own row: of several instances that
 * start at once, one inserts the row and the others wait for it. Throws for a database of a newer program, because its rows may have a meaning that
 * this program does not know, and for one of an older program than `OLDEST_BESIDE` while instances run on it. Statements have no time-out here, because an index on a large table may take long.
 */
export async function migrate({
  url,
  connectTimeoutMs,
  name,
  nowMs,
  directory = MIGRATIONS,
}: MigrateOptions): Promise<void> {
  const { migrations, newest } = readMigrations(directory);
  const client = new Client({ connectionString: url, connectionTimeoutMillis: connectTimeoutMs, keepAlive: true });
  // A broken connection also rejects its statement, so the event needs no handling.
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query('SET synchronous_commit = on');
    await unlessRaced(client, VERSIONS);
    for (let races = 0; races < MAX_RACES; races++) {
      // Counted before the versions are read: an instance that runs has finished migrating.
      const living = await livingOn(client);
      const done = await versionsOf(client);
      const last = Math.max(0, ...done);
      if (last > newest)
        throw new Error(`${name} is of version ${last}; this program knows ${newest}: start the newer program`);
      if (living > 0 && last < Math.min(OLDEST_BESIDE, newest)) throw new Error(besideWhat(name, last, living));
      const next = migrations.find(({ version }) => !done.has(version));
      if (!next) return;
      await apply(client, next.version, readFileSync(next.path, 'utf8'), nowMs);
    }
    throw new Error(
      `${name} could not be brought to version ${newest}: other instances are migrating it, and do not finish`,
    );
  } catch (error) {
    throw asLedgerError(error);
  } finally {
    await client.end();
  }
}

const besideWhat = (name: string, last: number, living: number): string =>
  `${name} is of version ${last}, and instances of that program run on it (${living}): stop them first. Only instances of version ${OLDEST_BESIDE} and ` +
  'later may run beside this program. A killed instance counts for 15 seconds';

/** The instances that run on this ledger. A ledger from before there were several has no table of them. */
async function livingOn(client: Client): Promise<number> {
  try {
    return await countLivingInstances(client);
  } catch (error) {
    if (error instanceof DatabaseError && error.code === NO_TABLE) return 0;
    throw error;
  }
}

async function versionsOf(client: Client): Promise<ReadonlySet<number>> {
  const { rows } = await client.query<{ version: string }>('SELECT version FROM ledger_migrations');
  return new Set(rows.map(({ version }) => Number(version)));
}

async function apply(client: Client, version: number, sql: string, nowMs: number): Promise<void> {
  const row = `INSERT INTO ledger_migrations (version, applied_at) VALUES (${version}, ${Math.trunc(nowMs)})`;
  await unlessRaced(client, `BEGIN ISOLATION LEVEL SERIALIZABLE`, row, sql, 'COMMIT');
}

/** Runs statements one after the other. When another instance was first, none of them is done. */
async function unlessRaced(client: Client, ...statements: readonly string[]): Promise<void> {
  try {
    for (const one of statements) await client.query(one);
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    if (!(error instanceof DatabaseError && RACED.has(error.code ?? ''))) throw error;
  }
}
