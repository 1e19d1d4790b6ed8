import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** The directory that was asked for, else the one in which the service keeps its data: `DATA_DIR`, or `data`. */
export function dataDirectory(given: string | undefined): string {
  return resolve(given ?? (process.env.DATA_DIR || 'data'));
}

/** A database of the service, which must be there: a command that made an empty one would say that nothing was ever sold. */
export function existingDatabase(dataDir: string, name: 'ledger.db' | 'chain.db'): string {
  const file = join(dataDir, name);
  if (!existsSync(file))
    throw new Error(`there is no ${name} in ${dataDir}; name its directory with --data-dir or DATA_DIR`);
  return file;
}
