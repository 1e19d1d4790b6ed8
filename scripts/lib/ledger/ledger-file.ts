import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { closeFolder } from '../../../src/store/private-folder.ts';

/** The given directory, else the service's own: `DATA_DIR`, or `data`. */
export function dataDirectory(given: string | undefined): string {
  return resolve(given ?? (process.env.DATA_DIR || 'data'));
}

/**
 * The path of an existing database of the service, whose folder is closed to other users first. Throws when it is
 * missing: an empty one would report that nothing was ever sold.
 */
export function existingDatabase(dataDir: string, name: 'ledger.db' | 'chain.db'): string {
  const file = join(dataDir, name);
  if (!existsSync(file))
    throw new Error(`there is no ${name} in ${dataDir}; name its directory with --data-dir or DATA_DIR`);
  closeDataFolder(dataDir);
  return file;
}

const closed = new Set<string>();

/**
 * Closes a data directory to other users of the machine, once. Says on standard error what it found, and throws where
 * the directory is not ours to close.
 */
export function closeDataFolder(dataDir: string): void {
  if (closed.has(dataDir)) return;
  const say = ({ path }: { readonly path: string }, message: string): void => console.error(`${path}: ${message}`);
  closeFolder(dataDir, { info: say, warn: say });
  closed.add(dataDir);
}
