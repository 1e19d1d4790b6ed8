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
  // The hash of the text, so that every process uses the same name and no two texts share one.
  const name = createHash('sha256').update(numbered).digest('hex').slice(0, 32);
  return (values) => ({ name, text: numbered, values: names.map((one) => (values as Record<string, unknown>)[one]) });
}

/** A statement without parameters. */
export const fixed = (text: string): Statement => statement<object>(text)({});
