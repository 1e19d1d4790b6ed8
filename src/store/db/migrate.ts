import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ClientBase } from 'pg';
import { type Migration, readMigrations } from '../../lib/sqlite-file.ts';
import { LIVING_MS } from '../ports/instances.ts';
import { NOW } from './sql.ts';

// The schema of the ledger is one numbered list of steps.
// 1. The steps up to 022 were released in two dialects. Their bytes are frozen, joined into one file a database.
// 2. A later step is one file for both, `NNN-what.sql`, in SQLite's words. PostgreSQL reads INTEGER as BIGINT, BLOB as
//    BYTEA, MONEY as NUMERIC(78, 0), and no STRICT or WITHOUT ROWID; SQLite reads MONEY as INTEGER. A line between
//    `-- only sqlite` or `-- only postgres` and `-- both`, or the end, is of one database alone.
// 3. SQLite keeps the number of the last step that it has (`migrate` in lib/sqlite-file.ts applies the others).
//    PostgreSQL keeps a row for each, because several instances may start at once.
// The client of PostgreSQL is imported as a type alone: a service over a file does not load it.

const FOLDER = join(import.meta.dirname, '../migrations');
const RELEASED = '001-022';
/** The line before each released step. */
const HEAD = /^-- (\d{3}) [a-z0-9-]+\n/m;

type LedgerDialect = 'sqlite' | 'postgres';

/**
 * The steps of a database, oldest first, in its own words. Throws when a number is there twice or, of the later steps,
 * is missing. Of the released ones some are missing, because they had nothing to do in this database.
 */
export function stepsOf(dialect: LedgerDialect, folder = FOLDER): readonly Migration[] {
  const released = splitSteps(readFileSync(join(folder, `${dialect}-${RELEASED}.sql`), 'utf8'));
  const later = readMigrations(folder, (released.at(-1)?.version ?? 0) + 1);
  return [...released, ...later.map(({ version, sql }) => ({ version, sql: inWordsOf(dialect, sql) }))];
}

/** The number of the newest step, which both databases have. */
export const newestVersion = (): number => stepsOf('sqlite').at(-1)?.version ?? 0;

function splitSteps(text: string): Migration[] {
  const [before, ...parts] = text.split(HEAD);
  if (before !== '') throw new Error('the first released step has no number');
  const steps: Migration[] = [];
  for (let at = 0; at < parts.length; at += 2) {
    const version = Number(parts[at]);
    if (version <= (steps.at(-1)?.version ?? 0))
      throw new Error(`the released step ${version} is there twice, or late`);
    steps.push({ version, sql: parts[at + 1] ?? '' });
  }
  return steps;
}

const WORDS: Record<LedgerDialect, Readonly<Record<string, string>>> = {
  sqlite: { MONEY: 'INTEGER' },
  postgres: { INTEGER: 'BIGINT', BLOB: 'BYTEA', MONEY: 'NUMERIC(78, 0)' },
};
/** Values and names in quotes, and comments, which stay as they are; the words; and what SQLite says behind a table. */
const TOKENS =
  /'(?:[^']|'')*'|"[^"]*"|--[^\n]*|\b(?:INTEGER|BLOB|MONEY)\b|\)\s*(?:(?:\s*,\s*)?(?:STRICT|WITHOUT\s+ROWID)\b)+/g;

function inWordsOf(dialect: LedgerDialect, sql: string): string {
  return linesOf(dialect, sql).replace(TOKENS, (token) => {
    if (token.startsWith(')')) return dialect === 'postgres' ? ')' : token;
    return WORDS[dialect][token] ?? token;
  });
}

/** Without the lines that the other database alone reads: from `-- only sqlite` to `-- both`, or to the end. */
function linesOf(dialect: LedgerDialect, sql: string): string {
  let only: string | null = null;
  const own = sql.split('\n').filter((line) => {
    const [mark, named] = /^\s*-- (?:only (\w+)|both)\s*$/.exec(line) ?? [];
    if (mark === undefined) return only === null || only === dialect;
    if (named !== undefined && !Object.hasOwn(WORDS, named))
      throw new Error(`-- only ${named}: there is no such database`);
    only = named ?? null;
    return false;
  });
  return own.join('\n');
}

/** SQLSTATEs of a lost race: another instance made the table, its type or the version's row, or both met. */
const RACED = new Set(['23505', '42P07', '42710', '40001', '40P01']);
/** The most lost races. In each, another instance has done a step. */
const MAX_RACES = 50;
/**
 * The oldest schema whose instances may run beside this program: those write rows that this program understands, and
 * take no row of it for another. Raise it with a migration that they cannot work with.
 * `test/crash/rolling-upgrade.test.ts` runs both on one ledger.
 */
const OLDEST_BESIDE = 18;
/** SQLSTATE of a table that does not exist. */
const NO_TABLE = '42P01';

const VERSIONS = `CREATE TABLE IF NOT EXISTS ledger_migrations (
  version    BIGINT PRIMARY KEY,
  applied_at BIGINT NOT NULL
)`;

type Client = Pick<ClientBase, 'query'>;

/**
 * Applies the steps that this database lacks. Each is one transaction that begins with the version's own row: of
 * several instances that start at once, one inserts the row and the others wait for it. Throws for a database of a
 * newer program, whose rows may have a meaning that this program does not know, and for one of an older program than
 * `OLDEST_BESIDE` while instances run on it.
 * `name` is the ledger's in error messages, without a password. The connection is one whose statements have no
 * time-out, because an index on a large table may take long.
 */
export async function migratePostgres(
  client: Client,
  name: string,
  nowMs: number,
  steps: readonly Migration[] = stepsOf('postgres'),
): Promise<void> {
  const newest = steps.at(-1)?.version ?? 0;
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
    const next = steps.find(({ version }) => !done.has(version));
    if (!next) return;
    await apply(client, next, nowMs);
  }
  throw new Error(
    `${name} could not be brought to version ${newest}: other instances are migrating it, and do not finish`,
  );
}

const besideWhat = (name: string, last: number, living: number): string =>
  `${name} is of version ${last}, and instances of that program run on it (${living}): stop them first. ` +
  `Only instances of version ${OLDEST_BESIDE} and later may run beside this program. ` +
  'A killed instance counts for 15 seconds';

const LIVING = `SELECT count(*) AS living FROM instances WHERE seen_at > ${NOW} - ${LIVING_MS}`;

/** The number of services on this ledger now, by the database's own clock. A killed one counts for 15 more seconds. */
export async function countLivingInstances(client: Client): Promise<number> {
  const { rows } = await client.query<{ living: string | number }>(LIVING);
  return Number(rows[0]?.living ?? 0);
}

/** The instances that run on this ledger. A ledger from before there were several has no table of them. */
async function livingOn(client: Client): Promise<number> {
  try {
    return await countLivingInstances(client);
  } catch (error) {
    if (stateOf(error) === NO_TABLE) return 0;
    throw error;
  }
}

async function versionsOf(client: Client): Promise<ReadonlySet<number>> {
  const { rows } = await client.query<{ version: string }>('SELECT version FROM ledger_migrations');
  return new Set(rows.map(({ version }) => Number(version)));
}

async function apply(client: Client, { version, sql }: Migration, nowMs: number): Promise<void> {
  const row = `INSERT INTO ledger_migrations (version, applied_at) VALUES (${version}, ${Math.trunc(nowMs)})`;
  await unlessRaced(client, `BEGIN ISOLATION LEVEL SERIALIZABLE`, row, sql, 'COMMIT');
}

/** Runs statements one after the other. When another instance was first, none of them is done. */
async function unlessRaced(client: Client, ...statements: readonly string[]): Promise<void> {
  try {
    for (const one of statements) await client.query(one);
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    if (!RACED.has(stateOf(error) ?? '')) throw error;
  }
}

/** The SQLSTATE of a failure; the network's codes are others. */
const stateOf = (error: unknown): string | undefined => (error as { readonly code?: string }).code;
