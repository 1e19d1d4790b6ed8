import { createHash } from 'node:crypto';

/** A statement and its values. Each connection prepares it once, under its name. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  readonly values: unknown[];
}

/**
 * Parses a text with `@names`, as in the statements for SQLite. The returned function takes their values. A name that occurs twice is one parameter.
 * Where the database cannot infer a parameter's type, the text states it (`@name::text`).
 */
export function statement<Values extends object>(text: string): (values: Values) => Statement {
  const names: string[] = [];
  const numbered = text.replaceAll(/@(\w+)/g, (_, name: string) => {
    if (!names.includes(name)) names.push(name);
    return `$${names.indexOf(name) + 1}`;
  });
  const name = nameOf(numbered);
  return (values) => ({ name, text: numbered, values: names.map((one) => (values as Record<string, unknown>)[one]) });
}

/** The hash of the text: every process uses the same name, and no two texts share one. */
export const nameOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 32);

/** A statement without parameters. */
export const fixed = (text: string): Statement => statement<object>(text)({});
