import type { Sqlite, Statement } from './database.ts';

/** Prepares each text once and keeps it, so that a statement whose text is put together costs no more than a fixed one. */
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

/** As many marks as there are values, for an `IN (…)`. */
export const marks = (values: readonly unknown[]): string => values.map(() => '?').join(', ');
