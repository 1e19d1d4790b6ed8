import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The numbered files of a directory, oldest first, and the version of a database after the last one. A file's version is its number. */
export function readMigrations(directory: string) {
  const names = readdirSync(directory).filter((name) => /^\d{3}-.+\.sql$/.test(name));
  const migrations = names.sort().map((name) => ({ version: Number(name.slice(0, 3)), path: join(directory, name) }));
  return { migrations, newest: migrations.at(-1)?.version ?? 0 };
}
