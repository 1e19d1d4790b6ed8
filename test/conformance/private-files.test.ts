import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { ENV } from '../http/harness.ts';
import { CHILD_ENV, CHILD_OPTIONS } from '../support/service/child-env.ts';

const ROOT = join(import.meta.dirname, '../..');
const SERVER = join(ROOT, 'dist/server.js');

/** Each file of a folder that others may read or write, and the folder itself where they may enter it. */
const openIn = (folder: string): string[] =>
  ['.', ...(readdirSync(folder, { recursive: true }) as string[])].filter(
    (name) => (statSync(join(folder, name)).mode & 0o077) !== 0,
  );

/** A command of the operator under the usual umask, with which new files are open to all. */
const run = (script: string, ...args: string[]): string =>
  execFileSync('/bin/sh', ['-c', 'umask 022 && exec "$0" "$@"', process.execPath, join(ROOT, script), ...args], {
    encoding: 'utf8',
    env: CHILD_ENV,
    stdio: ['ignore', 'pipe', 'pipe'],
  });

/** A data folder as an older version left it after a kill: open to all, with a WAL in use. */
function exposed() {
  const folder = join(mkdtempSync(join(tmpdir(), 'percall-exposed-')), 'data');
  mkdirSync(folder);
  chmodSync(folder, 0o755);
  const db = new Database(join(folder, 'ledger.db'));
  db.pragma('journal_mode = WAL');
  db.exec('CREATE TABLE of_the_test (a)');
  for (const name of readdirSync(folder)) chmodSync(join(folder, name), 0o644);
  expect(openIn(folder)).toEqual(['.', 'ledger.db', 'ledger.db-shm', 'ledger.db-wal']);
  return { folder, db };
}

/** Starts the service on a folder under the usual umask, and returns when it listens. */
async function start(folder: string) {
  const env = { ...CHILD_ENV, ...ENV, DATA_DIR: folder, PORT: '0' };
  const command = ['-c', 'umask 022 && exec "$0" "$@"', process.execPath, ...CHILD_OPTIONS, SERVER];
  const child = spawn('/bin/sh', command, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const lines: { msg?: string; path?: string }[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(JSON.parse(line));
    if (lines.at(-1)?.msg === 'listening') break;
  }
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await once(child, 'exit');
  };
  return { lines, stop };
}

test('the service closes an open data folder and its files, and makes every other file for itself alone', async () => {
  const { folder, db } = exposed();
  const { lines, stop } = await start(folder);
  expect(openIn(folder)).toEqual([]);
  expect(readdirSync(folder)).toEqual(expect.arrayContaining(['chain.db', 'ledger.db-wal', 'ledger.db-shm']));
  expect(lines.filter(({ path }) => path === folder)).toHaveLength(1);

  // Beside the service, in a folder that does not exist yet.
  const copies = join(folder, '..', 'copies');
  run('scripts/backup.ts', '--data-dir', folder, '--to', copies, '--with-chain');
  run('scripts/backup.ts', '--data-dir', folder, '--to', copies, '--chain');
  expect(readdirSync(copies)).toHaveLength(3);
  expect(openIn(copies)).toEqual([]);
  await stop();
  db.close();
  expect(openIn(folder)).toEqual([]);
});

test('a tool that opens an open data folder closes it too', () => {
  const { folder, db } = exposed();
  db.close();
  chmodSync(join(folder, 'ledger.db'), 0o666);
  // This ledger has no tables.
  expect(() => run('scripts/ledger.ts', 'status', '--data-dir', folder)).toThrow();
  expect(openIn(folder)).toEqual([]);
});

test('the service refuses a folder that is not its own to close', async () => {
  const folder = join(mkdtempSync(join(tmpdir(), 'percall-shared-')), 'data');
  mkdirSync(folder);
  chmodSync(folder, 0o1777);
  const env = { ...CHILD_ENV, ...ENV, DATA_DIR: folder, PORT: '0' };
  const child = spawn(process.execPath, [...CHILD_OPTIONS, SERVER], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (chunk) => {
    said += String(chunk);
  });
  const [code] = await once(child, 'close');
  expect([code, said]).toEqual([1, expect.stringContaining(`DATA_DIR: ${folder} holds files of other programs`)]);
  expect([readdirSync(folder), (statSync(folder).mode & 0o7777).toString(8)]).toEqual([[], '1777']);
});

// Their files hold signatures, too.
test.each(['server.ts', 'scripts/demo.ts', 'cli/percall.ts'])('%s makes its files for its user alone', (program) => {
  const text = readFileSync(join(ROOT, program === 'server.ts' ? 'src/server.ts' : program), 'utf8');
  expect(text).toMatch(/^ *process\.umask\(0o077\);$/m);
});
