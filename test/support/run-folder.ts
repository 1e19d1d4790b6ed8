import { chmodSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** How the names of these folders begin. */
export const RUN_FOLDER = 'percall-run-';

/** Makes the temporary folder of a run of the tests. What tests leave there goes with it: test/support/global-setup.ts deletes it at the end. */
export function makeRunFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), RUN_FOLDER));
  // PostgreSQL's own user looks for its files in it.
  chmodSync(folder, 0o711);
  return folder;
}
