import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { endServer } from '../support/postgres/postgres-run.ts';

let folder: string;

/** Makes the temporary folder of a run over PostgreSQL, without the programs that other runs build. */
export function setup(): void {
  folder = mkdtempSync(join(tmpdir(), 'percall-run-'));
  chmodSync(folder, 0o711);
  process.env.TMPDIR = folder;
}

export async function teardown(): Promise<void> {
  await endServer();
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}
