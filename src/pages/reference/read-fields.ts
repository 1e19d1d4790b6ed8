import type { Resolve, Schema } from './schema.ts';

/** One member of an answer. `name` is a path: `records.A[].ttl`. */
export interface Field {
  readonly name: string;
  readonly type: string;
  readonly text: string;
}

/** Members of members that are shown. Answers nest no deeper. */
const MAX_DEPTH = 4;
/** More values than this make a type unreadable. */
const MAX_VALUES = 8;

/** The members of an answer, those of nested objects and lists included, in the schema's order. */
export function readFields(schema: Schema, resolve: Resolve): Field[] {
  return membersOf(schema, '', 0, resolve);
}

function membersOf(given: Schema, prefix: string, depth: number, resolve: Resolve): Field[] {
  const schema = formOf(given, resolve);
  if (depth > MAX_DEPTH) return [];
  if (schema.items) return membersOf(schema.items, `${prefix}[]`, depth, resolve);
  return Object.entries(schema.properties ?? {}).flatMap(([name, raw]) => {
    const member = resolve(raw);
    const path = prefix === '' ? name : `${prefix}.${name}`;
    const text = raw.description ?? member.description ?? '';
    return [{ name: path, type: typeOf(raw, resolve), text }, ...membersOf(member, path, depth + 1, resolve)];
  });
}

/** Of alternatives, the one that has members: the others are null. */
function formOf(given: Schema, resolve: Resolve): Schema {
  const schema = resolve(given);
  const forms = (schema.anyOf ?? schema.oneOf ?? []).map((form) => formOf(form, resolve));
  return forms.find(({ properties, items }) => properties ?? items) ?? schema;
}

function typeOf(given: Schema, resolve: Resolve): string {
  const schema = resolve(given);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum && schema.enum.length <= MAX_VALUES)
    return schema.enum.map((value) => JSON.stringify(value)).join(' or ');
  const forms = schema.anyOf ?? schema.oneOf;
  if (forms) return [...new Set(forms.map((form) => typeOf(form, resolve)))].join(' or ');
  if (schema.items) return `list of ${typeOf(schema.items, resolve)}`;
  return [schema.type ?? 'any'].flat().join(' or ');
}
