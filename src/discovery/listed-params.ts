import { own, ownKeys, plainText } from '../lib/untrusted.ts';
import type { ListedEntry } from './entry.ts';

type Param = ListedEntry['params'][number];
type Json = Param['example'];

const MAX_PARAMS = 20;
const MAX_DESCRIPTION = 200;
/** Characters of a parameter's example, as JSON. The next constant limits a whole body's. */
const MAX_EXAMPLE = 300;
const MAX_BODY = 2000;
const MAX_TEXT = 200;
const MAX_MEMBERS = 30;
const MAX_DEPTH = 5;

const NAME = /^[A-Za-z0-9_$][\w$.:[\]-]{0,63}$/;
const TYPES = new Set(['string', 'integer', 'number', 'boolean', 'array', 'object']);

/** The names that sellers and catalogues give to the groups of a request's parts (x402 v1, Bazaar, Circle). */
const GROUPS = [
  { keys: ['pathParams'], in: 'path' },
  { keys: ['queryParams'], in: 'query' },
  { keys: ['bodyParams', 'bodyFields', 'body'], in: 'body' },
] as const;

/**
 * Reads a third party's description of parameters, defensively: a JSON Schema of an object, or groups such as `queryParams`.
 * A parameter outside any group belongs to the query of a GET or to the body of a POST. The URL's {placeholders} are always included.
 */
export function readParams(input: unknown, method: 'GET' | 'POST', url: string): Param[] {
  const found = new Map<string, Param>();
  const add = (param: Param | null) => {
    if (param && found.size < MAX_PARAMS && !found.has(param.name)) found.set(param.name, param);
  };
  const placeholders = [...url.matchAll(/\{([^{}/]+)\}/g)].map((match) => match[1] ?? '');
  const grouped = GROUPS.some(({ keys }) => keys.some((key) => own(input, key) !== undefined));
  const elsewhere = method === 'GET' ? ('query' as const) : ('body' as const);
  const groups = grouped
    ? GROUPS.map((group) => ({ place: group.in, members: group.keys.map((key) => own(input, key)).find(isObject) }))
    : [{ place: elsewhere, members: isObject(input) ? input : undefined }];
  for (const { place, members } of groups) {
    const properties = own(members, 'properties');
    const fields = isObject(properties) ? properties : grouped ? members : undefined;
    for (const name of ownKeys(fields)?.slice(0, MAX_PARAMS) ?? []) {
      const at = placeholders.includes(String(name)) ? 'path' : place;
      add(readParam(String(name), own(fields, name), at, own(members, 'required')));
    }
  }
  for (const name of placeholders) add(readParam(name, { type: 'string' }, 'path', [name]));
  return [...found.values()];
}

function readParam(name: string, spec: unknown, place: Param['in'], required: unknown): Param | null {
  if (!NAME.test(name)) return null;
  const isSpec = isObject(spec);
  const examples = own(spec, 'examples');
  const example = own(spec, 'example') ?? (Array.isArray(examples) ? examples[0] : undefined) ?? own(spec, 'default');
  return {
    name,
    in: place,
    type: typeOf(isSpec ? own(spec, 'type') : typeof spec),
    description: plainText(own(spec, 'description'), MAX_DESCRIPTION),
    required:
      place === 'path' || (Array.isArray(required) && required.includes(name)) || own(spec, 'required') === true,
    // A value without a description is itself the example.
    example: cleanJson(isSpec ? example : spec, MAX_EXAMPLE),
  };
}

function typeOf(type: unknown): string {
  const named = Array.isArray(type) ? type.find((one) => one !== 'null') : type;
  return typeof named === 'string' && TYPES.has(named) ? named : 'any';
}

/** An example body of a POST: the seller's own, or one made from the examples of its fields. Null when there is none. */
export function readBody(input: unknown, params: readonly Param[]): Json {
  const example = own(input, 'example') ?? own(own(input, 'body'), 'example');
  if (isObject(example)) return cleanJson(example, MAX_BODY);
  const fields = params.filter((param) => param.in === 'body' && param.example !== null);
  return fields.length === 0 ? null : Object.fromEntries(fields.map((param) => [param.name, param.example]));
}

/** A third party's JSON with every text made plain, and with limits on depth, members and length. Null when it is too large. */
function cleanJson(value: unknown, max: number): Json {
  const cleaned = clean(value, 0);
  return JSON.stringify(cleaned).length <= max ? cleaned : null;
}

function clean(value: unknown, depth: number): Json {
  if (typeof value === 'string') return plainText(value, MAX_TEXT);
  if (typeof value === 'boolean') return value;
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (depth === MAX_DEPTH) return null;
  if (Array.isArray(value)) return value.slice(0, MAX_MEMBERS).map((item) => clean(item, depth + 1));
  const keys = (ownKeys(value) ?? []).map(String).filter((key) => NAME.test(key) && key !== '__proto__');
  if (!isObject(value)) return null;
  return Object.fromEntries(keys.slice(0, MAX_MEMBERS).map((key) => [key, clean(own(value, key), depth + 1)]));
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
