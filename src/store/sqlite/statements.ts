import type { Sqlite } from '../../lib/sqlite-file.ts';
import type { Statement } from './database.ts';

/** Prepares each text once and caches it, so that a generated statement costs no more than a fixed one. */
export function createStatements(db: Sqlite): (text: string) => Statement {
  const prepared = new Map<string, Statement>();
  return (text) => {
    const known = prepared.get(text);
    if (known) return known;
    const statement = db.prepare<unknown[], unknown>(text);
    prepared.set(text, statement);
    return statement;
  };
}

/** One `?` for each value, for an `IN (…)`. */
export const marks = (values: readonly unknown[]): string => values.map(() => '?').join(', ');
