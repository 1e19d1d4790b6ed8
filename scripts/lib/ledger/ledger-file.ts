import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** The given directory, else the service's own: `DATA_DIR`, or `data`. */
export function dataDirectory(given: string | undefined): string {
  return resolve(given ?? (process.env.DATA_DIR || 'data'));
}

/** The path of an existing database of the service. Throws when it is missing: an empty one would report that nothing was ever sold. */
export function existingDatabase(dataDir: string, name: 'ledger.db' | 'chain.db'): string {
  const file = join(dataDir, name);
  if (!existsSync(file))
    throw new Error(`there is no ${name} in ${dataDir}; name its directory with --data-dir or DATA_DIR`);
  return file;
}
