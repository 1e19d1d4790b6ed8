import { createHash } from 'node:crypto';

/** A statement and its values. A connection prepares it once, under its name. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  readonly values: unknown[];
}

/**
 * Reads a text with `@names`, as the statements of SQLite have them, and returns what fills in their values. A name that occurs twice
 * is one parameter; where the database cannot tell a parameter's type from its place, the text says it (`@name::text`).
 */
export function statement<Values extends object>(text: string): (values: Values) => Statement {
  const names: string[] = [];
  const numbered = text.replaceAll(/@(\w+)/g, (_, name: string) => {
    if (!names.includes(name)) names.push(name);
    return `$${names.indexOf(name) + 1}`;
  });
  // By its text, so that every process calls it the same and no two texts share a name.
  const name = createHash('sha256').update(numbered).digest('hex').slice(0, 32);
  return (values) => ({ name, text: numbered, values: names.map((one) => (values as Record<string, unknown>)[one]) });
}

/** A statement without parameters. */
export const fixed = (text: string): Statement => statement<object>(text)({});
