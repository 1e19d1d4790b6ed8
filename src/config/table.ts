import type { z } from 'zod';

// What a table of the configuration is. A line has the member's name, the key, how its value is read, its default and
// the sentence for people. Types, errors, .env.example and docs/configuration.md (`npm run settings`) come from it.

export interface Key<T> {
  readonly name: string;
  /** Says in its error what form is expected, without the value: that may be a secret. */
  readonly schema: z.ZodType<T, string | undefined>;
  /** As it would be given; empty where an unset key has no value to show. */
  readonly fallback: string;
  readonly sentence: string;
}

/** Keys by the member that holds their value; a member can be a group of keys. */
export interface Members {
  readonly [member: string]: Key<unknown> | Members;
}

/** The environment as it was given, without empty values, before anything is read. */
export type Given = Readonly<Record<string, string | undefined>>;
/** What several keys must fit: false where they do, else the sentence that says what is wrong. */
export type Rule = (given: Given) => string | false;

export interface Table<M extends Members = Members> {
  readonly title: string;
  readonly rules: readonly Rule[];
  readonly members: M;
}

/** What a table becomes once its values are read. */
export type Settings<T> =
  T extends Table<infer M> ? Settings<M> : T extends Key<infer V> ? V : { readonly [N in keyof T]: Settings<T[N]> };

export const table = <M extends Members>(title: string, rules: readonly Rule[], members: M): Table<M> => {
  return { title, rules, members };
};

/** The sentence follows as a template, whose line breaks are spaces. */
const line = <T>(name: string, schema: z.ZodType<T, string | undefined>, fallback = '') => {
  return ([sentence = '']: TemplateStringsArray): Key<T> => {
    return { name, schema, fallback, sentence: sentence.replace(/\s*\n\s*/g, ' ') };
  };
};

/** A key whose default is read like a given value; without a default it must be set. */
export const key = <T>(name: string, schema: z.ZodType<T, string>, fallback?: string) =>
  line(name, fallback === undefined ? schema : schema.prefault(fallback), fallback);

/** A key whose value is null while it is unset. */
export const optional = <T>(name: string, schema: z.ZodType<T, string>) =>
  line<T | null>(
    name,
    schema.optional().transform((value) => value ?? null),
  );

/** Rules that name each missing key where `why` says what needs it. */
export const needed = (names: readonly string[], why: Rule): Rule[] =>
  names.map((name) => (given) => {
    const reason = given[name] === undefined && why(given);
    return reason && `${name} is missing (${reason})`;
  });

const isKey = (member: Key<unknown> | Members): member is Key<unknown> => typeof member.name === 'string';

/** A table's keys in its order, those of groups too. */
export function keysOf({ members }: { readonly members: Members }): Key<unknown>[] {
  return Object.values(members).flatMap((member) => (isKey(member) ? [member] : keysOf({ members: member })));
}

/** Reads every value. Each that cannot be read adds a line to `problems`; then the result is useless. */
export function readMembers(members: Members, given: Given, problems: string[]): object {
  const read = (member: Key<unknown> | Members): unknown => {
    if (!isKey(member)) return readMembers(member, given, problems);
    const { name, schema } = member;
    const { data, error } = schema.safeParse(given[name]);
    if (error) problems.push(given[name] === undefined ? `${name} is missing` : `${name}: ${error.issues[0]?.message}`);
    return data;
  };
  return Object.fromEntries(Object.entries(members).map(([name, member]) => [name, read(member)]));
}
