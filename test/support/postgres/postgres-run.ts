import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';

const KEEPER = new URL('postgres-keeper.ts', import.meta.url).pathname;
const READY_MS = 120_000;
/** One for each run of the tests: its workers have one parent, whose process id this is. */
const folderOf = (run: number): string => join(tmpdir(), `percall-postgres-run-${run}`);
const folder = folderOf(process.ppid);

/**
 * A database of its own on the one server of this run, which starts when the first test file asks for it: with all migrations and no rows,
 * or with nothing at all.
 */
export async function freshDatabase(template: 'ledger_template' | 'template1' = 'ledger_template'): Promise<string> {
  const server = await serverUrl();
  const name = `ledger_${randomBytes(6).toString('hex')}`;
  const client = new Client({ connectionString: `${server}postgres` });
  await client.connect();
  await client.query(`CREATE DATABASE ${name} TEMPLATE ${template}`);
  await client.end();
  return `${server}${name}`;
}

async function serverUrl(): Promise<string> {
  for (const until = Date.now() + READY_MS; Date.now() < until; ) {
    if (claimed()) startKeeper();
    const url = readNote('url');
    if (url !== null) return url;
    const error = readNote('error');
    if (error !== null) throw new Error(`PostgreSQL did not start: ${error}`);
    forgetDeadKeeper();
    await delay(30);
  }
  throw new Error(`PostgreSQL did not start in ${READY_MS / 1000} s`);
}

/** Only one worker succeeds in creating the folder. */
function claimed(): boolean {
  try {
    mkdirSync(folder);
    return true;
  } catch {
    return false;
  }
}

function startKeeper(): void {
  const keeper = spawn(process.execPath, [KEEPER, folder, String(process.ppid)], { detached: true, stdio: 'ignore' });
  keeper.unref();
  writeFileSync(join(folder, 'keeper'), String(keeper.pid));
}

/** The folder of an earlier run with the same number, whose keeper was killed too. */
function forgetDeadKeeper(): void {
  const pid = Number(readNote('keeper') ?? 0);
  if (pid > 0 && !existsSync(`/proc/${pid}`)) rmSync(folder, { recursive: true, force: true });
}

/** Ends the server of a run, and resolves when it has deleted its files. */
export async function endServer(run: number): Promise<void> {
  const keeper = `/proc/${readNote('keeper', folderOf(run))}`;
  rmSync(folderOf(run), { recursive: true, force: true });
  for (const until = Date.now() + READY_MS; existsSync(keeper) && Date.now() < until; ) await delay(30);
}

function readNote(name: string, of = folder): string | null {
  try {
    return readFileSync(join(of, name), 'utf8');
  } catch {
    return null;
  }
}
