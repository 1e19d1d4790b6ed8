import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename } from 'node:path';
import { promisify } from 'node:util';
import { endServer } from './postgres/postgres-run.ts';
import { RUN_FOLDER } from './run-folder.ts';

/**
 * Builds the service before the tests, which start it as `npm start` does, and the other programs that they start often. A process of its own builds: the
 * bundler's 700 MB would stay with Vitest until the last test.
 */
export async function setup(): Promise<void> {
  await promisify(execFile)(process.execPath, ['test/support/service/build-programs.ts']);
}

/** Deletes the run's temporary folder. It lies in memory, so what killed programs have left there would take room. */
export async function teardown(): Promise<void> {
  const folder = tmpdir();
  if (!basename(folder).startsWith(RUN_FOLDER)) return;
  await endServer(process.pid);
  // Once more where a program that is being killed still writes.
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}
