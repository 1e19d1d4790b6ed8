import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { sql } from '../../../src/store/db/sql.ts';

interface Printed {
  readonly text: string;
  readonly followers: readonly string[];
  readonly given: readonly never[] | null;
}

/** Every text that both databases run. */
export function commonTexts() {
  const printed = execFileSync(process.execPath, [join(import.meta.dirname, 'list-texts.ts')], { encoding: 'utf8' });
  return (JSON.parse(printed) as Printed[]).map(({ text, followers, given }) => sql<object>(text, followers, given));
}

export type CommonText = ReturnType<typeof commonTexts>[number];

/** A text with its followers. */
export const whole = ({ text, followers }: Pick<CommonText, 'text' | 'followers'>): string =>
  [text, ...followers].join('\n');

/** Values for each parameter of a text: null, a list or rows of null. */
export function nothingFor(text: string): Record<string, unknown> {
  const names = [...text.matchAll(/@(\w+)/g)].map(([, name = '']) => name);
  const lists = new Set([...text.matchAll(/\bIN\s+@(\w+)/g)].map(([, name]) => name));
  const rows = new Set([...text.matchAll(/\bFROM\s+@(\w+)::\(/g)].map(([, name]) => name));
  return Object.fromEntries(names.map((name) => [name, lists.has(name) ? [null] : rows.has(name) ? [{}] : null]));
}
