import { readdirSync } from 'node:fs';

/** The version that a database has once every numbered file of the directory was applied to it. */
export function newestVersion(directory: string): number {
  return Math.max(0, ...readdirSync(directory).map((name) => Number(/^(\d{3})-.+\.sql$/.exec(name)?.[1] ?? 0)));
}
