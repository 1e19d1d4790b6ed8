import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The numbered files of a directory, oldest first, each with the version that a database has once it was applied. */
export function migrationsIn(directory: string) {
  const names = readdirSync(directory).filter((name) => /^\d{3}-.+\.sql$/.test(name));
  return names.sort().map((name) => ({ version: Number(name.slice(0, 3)), path: join(directory, name) }));
}

/** The version that a database has once all of them were. */
export const newestVersion = (directory: string): number => migrationsIn(directory).at(-1)?.version ?? 0;
