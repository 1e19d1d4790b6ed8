import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startPostgres } from '../../../scripts/lib/ledger/postgres.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { openPostgresStores } from '../../../src/store/open-postgres.ts';

// A process of its own that keeps one server for all test files of a run: `postgres-keeper.ts FOLDER PID`.
// It writes the server's URL to a file, and ends the server when the folder is deleted or the run's process has ended.
const [folder = '', pid = ''] = process.argv.slice(2);
const LOOK_MS = 300;
/**
 * Each new database goes through the server's buffers and its log. The log is memory, too, where the server's files are in /dev/shm. A run fills
 * PostgreSQL's 128 MB of buffers, and it filled 0.4 GB of a log that may have 4 GB.
 */
const SETTINGS = { shared_buffers: '32MB', min_wal_size: '32MB', max_wal_size: '64MB' };

const tell = (name: string, text: string): void => {
  writeFileSync(join(folder, `${name}.part`), text);
  renameSync(join(folder, `${name}.part`), join(folder, name));
};
const lives = (): boolean => {
  try {
    process.kill(Number(pid), 0);
    return existsSync(folder);
  } catch {
    return false;
  }
};
async function untilTheEnd(): Promise<void> {
  while (lives()) await new Promise((next) => setTimeout(next, LOOK_MS));
}

try {
  const server = await startPostgres({}, SETTINGS);
  try {
    await server.createDatabase('ledger_template');
    const url = server.url('ledger_template');
    const limits = { poolSize: 4, connectTimeoutMs: 10_000, statementTimeoutMs: 60_000 };
    await (await openPostgresStores({ url, ...limits, clock: systemClock })).close();
    tell('url', server.url(''));
    await untilTheEnd();
  } finally {
    await server.stop();
  }
} catch (error) {
  if (existsSync(folder)) tell('error', String(error));
  // Every test file must get this error, and none may try again.
  await untilTheEnd();
}
rmSync(folder, { recursive: true, force: true });
