import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { createDatabase } from '../../../scripts/lib/ledger/postgres.ts';

const KEEPER = new URL('postgres-keeper.ts', import.meta.url).pathname;
const READY_MS = 120_000;
/** The longest wait for the server's end. It takes a tenth of a second. */
const END_MS = 10_000;
/** The workers' notes of the server, in the temporary folder of the run. */
const notes = (): string => join(tmpdir(), 'postgres-run');

/** The databases of this worker's present test file. */
const ofThisFile: string[] = [];

/**
 * A database of its own on the one server of this run, which starts when the first test file asks for it: with all migrations and no rows,
 * or with nothing at all. It is dropped after its test file.
 */
export async function freshDatabase(template: 'ledger_template' | 'template1' = 'ledger_template'): Promise<string> {
  const { url, name } = await newDatabase(template);
  ofThisFile.push(name);
  return url;
}

/** The same, with all migrations, for every test file of this worker. */
export async function workersDatabase(): Promise<string> {
  return (await newDatabase('ledger_template')).url;
}

async function newDatabase(template: string): Promise<{ url: string; name: string }> {
  const server = await serverUrl();
  const name = `ledger_${randomBytes(6).toString('hex')}`;
  await createDatabase(`${server}postgres`, name, template);
  return { url: `${server}${name}`, name };
}

/** Drops the databases of the test file that has ended. One that still has a connection stays, and is tried again after the next file. */
export async function dropDatabases(): Promise<void> {
  if (ofThisFile.length === 0) return;
  const client = new Client({ connectionString: `${await serverUrl()}postgres` });
  await client.connect();
  try {
    for (const name of await unused(client, ofThisFile)) {
      await client.query(`DROP DATABASE ${name}`);
      ofThisFile.splice(ofThisFile.indexOf(name), 1);
    }
  } finally {
    await client.end();
  }
}

/** Those without a connection. DROP DATABASE would wait five seconds for the others. */
async function unused(client: Client, names: readonly string[]): Promise<string[]> {
  const query = `SELECT datname AS name FROM pg_database
    WHERE datname = ANY($1) AND datname NOT IN (SELECT datname FROM pg_stat_activity WHERE datname IS NOT NULL)`;
  return (await client.query<{ name: string }>(query, [names])).rows.map(({ name }) => name);
}

async function serverUrl(): Promise<string> {
  for (const until = Date.now() + READY_MS; Date.now() < until; ) {
    if (claimed()) startKeeper();
    const url = readNote('url');
    if (url !== null) return url;
    const error = readNote('error');
    if (error !== null) throw new Error(`PostgreSQL did not start: ${error}`);
    await delay(30);
  }
  throw new Error(`PostgreSQL did not start in ${READY_MS / 1000} s`);
}

/** Only one worker succeeds in creating the folder. */
function claimed(): boolean {
  try {
    mkdirSync(notes());
    return true;
  } catch {
    return false;
  }
}

function startKeeper(): void {
  const keeper = spawn(process.execPath, [KEEPER, notes(), String(process.ppid)], { detached: true, stdio: 'ignore' });
  keeper.unref();
  writeFileSync(join(notes(), 'keeper'), String(keeper.pid));
}

/** Ends the server of this run, which deletes its files. Does nothing where no test has started it. */
export async function endServer(): Promise<void> {
  const keeper = readNote('keeper');
  // The keeper ends the server when its folder is gone.
  rmSync(notes(), { recursive: true, force: true });
  if (keeper === null) return;
  for (const until = Date.now() + END_MS; existsSync(`/proc/${keeper}`) && Date.now() < until; ) await delay(30);
}

function readNote(name: string): string | null {
  try {
    return readFileSync(join(notes(), name), 'utf8');
  } catch {
    return null;
  }
}
