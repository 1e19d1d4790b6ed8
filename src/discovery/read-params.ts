import { own } from '../lib/own-property.ts';
import type { Entry } from './entry.ts';
import { type Json, membersOf, plainJson, TEXT_LIMITS } from './market-text.ts';
import { plainText } from './plain-text.ts';

export type Param = Entry['params'][number];

/** An entry with more is cut: nobody reads on, and an agent that needs them asks the seller. */
export const MAX_PARAMS = 30;
const TYPES = ['string', 'number', 'integer', 'boolean', 'array', 'object'];

/** What is said of one parameter, in whatever document. */
interface Said {
  readonly name: string;
  readonly in: Param['in'];
  /** JSON Schema, or what version 1 had in its place. */
  readonly schema: unknown;
  readonly required: boolean;
  readonly description?: unknown;
  readonly example?: unknown;
}

/** One parameter in an entry's form. */
export function paramOf({ name, in: place, schema, required, description, example }: Said): Param {
  const [first] = listOf(own(schema, 'examples'));
  const shown = [example, own(schema, 'example'), first, own(schema, 'default')].find((given) => given !== undefined);
  return {
    name,
    in: place,
    type: typeOf(schema, shown),
    description: plainText(description ?? own(schema, 'description'), TEXT_LIMITS.hint),
    required,
    example: shown === undefined ? null : plainJson(shown),
  };
}

/**
 * Parameters from a JSON Schema of an object and from an example of one: what either names. Of an example alone nothing is known to be required.
 * Version 1 wrote `required: true` at the member itself, which is read too.
 */
export function paramsOf(schema: unknown, example: unknown, place: Param['in']): Param[] {
  const required = listOf(own(schema, 'required'));
  const described = new Map(membersOf(own(schema, 'properties'), MAX_PARAMS));
  const exemplified = new Map(membersOf(example, MAX_PARAMS));
  const names = [...new Set([...described.keys(), ...exemplified.keys()])].slice(0, MAX_PARAMS);
  return names.map((name) => {
    const member = described.get(name);
    const isRequired = required.includes(name) || own(member, 'required') === true;
    return paramOf({ name, in: place, schema: member, required: isRequired, example: exemplified.get(name) });
  });
}

/** An example body made of the parameters' own examples; null where there is none to show. */
export function bodyOf(params: readonly Param[]): Json {
  const shown = params.filter((param) => param.in === 'body' && param.example !== null);
  return shown.length === 0 ? null : Object.fromEntries(shown.map(({ name, example }) => [name, example]));
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** JSON Schema's word, the first of several; else what the example is; else `any`. */
function typeOf(schema: unknown, example: unknown): string {
  const said = own(schema, 'type');
  const named = (Array.isArray(said) ? said : [said]).find((type) => TYPES.includes(String(type)));
  if (named !== undefined) return String(named);
  if (Array.isArray(example)) return 'array';
  const seen = typeof example;
  return example !== null && TYPES.includes(seen) ? seen : 'any';
}
