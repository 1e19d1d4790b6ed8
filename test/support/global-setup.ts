import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { endServer } from './postgres/postgres-run.ts';

const BUILD_PROGRAMS = new URL('service/build-programs.ts', import.meta.url).pathname;

/** The temporary folder of this run. */
let folder: string;

/** Makes the run's temporary folder, and builds the service, which tests start as `npm start` does, and the other programs that they start often. */
export async function setup(): Promise<void> {
  folder = mkdtempSync(join(tmpdir(), 'percall-run-'));
  // Where root runs the tests, PostgreSQL runs as a user of its own, which must be able to enter the folder.
  chmodSync(folder, 0o711);
  process.env.TMPDIR = folder;
  // In its own process, because Vitest's would keep the bundler's 700 MB until the end.
  await promisify(execFile)(process.execPath, [BUILD_PROGRAMS]);
}

/** Deletes the folder, with what killed programs have left in it. In /dev/shm that would keep its memory. */
export async function teardown(): Promise<void> {
  await endServer();
  // Tries again, because a program that is being killed may still write.
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}
