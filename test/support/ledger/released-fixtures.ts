import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { fixtureOf, type ReleasedSchema } from '../../../scripts/lib/schemas/released.ts';

const FOLDER = join(import.meta.dirname, '../../fixtures/schemas');

/** Unpacks the database that a released version made, as a file that may be changed. */
export function unpack(schema: ReleasedSchema, file: string): void {
  writeFileSync(file, gunzipSync(readFileSync(join(FOLDER, fixtureOf(schema)))));
}

/** The SQL that makes the database of a released version on PostgreSQL. */
export const dumpOf = (schema: ReleasedSchema): string => readFileSync(join(FOLDER, fixtureOf(schema)), 'utf8');
