import { followReference, isObject, own, plainText } from '../../src/lib/untrusted.ts';

// What a host may read of a seller: names, texts and schemas, rebuilt from what is known and bounded. Hosts show them
// to a model, which takes text for instructions, and hand schemas to validators and to the model's provider.

/** The tools of this program. No seller's tool gets such a name. */
export const OWN_NAMES = ['search', 'balance', 'receipts'] as const;

/** Hosts and providers take names of at most 64 characters; ours add up to 20 to the seller's. */
const MOST_NAME = 44;

/**
 * The name under which a host sees a seller's tool: of letters, digits, `_` and `-`, neither ours nor taken, whatever
 * the case. `taken` is in lower case.
 */
export function nameFor(wanted: string, taken: ReadonlySet<string>): string {
  const plain = wanted.replace(/[^A-Za-z0-9_-]+/g, '_').slice(0, MOST_NAME) || 'tool';
  const isOurs = OWN_NAMES.some((name) => name === plain.toLowerCase());
  const base = isOurs ? `seller_${plain}` : plain;
  let name = base;
  for (let count = 2; taken.has(name.toLowerCase()); count++) name = `${base}_${count}`;
  return name;
}

export type Schema = Readonly<Record<string, unknown>>;

/** A tool whose schema has more is shown without it. */
const MOST_NODES = 400;
const MOST_DEPTH = 8;
const MOST_CHARACTERS = 16_000;
/** The most text that is cleaned for one schema, with what cleaning leaves out. */
const MOST_READ = 200_000;
const MOST_VALUES = 100;
const MOST_CHOICES = 10;
const MOST_TEXT = 300;

const TYPES = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'];
const NUMBERS = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'] as const;
const COUNTS = ['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'] as const;
/** Providers refuse other names of properties, and a longer one is a text. */
const PROPERTY = /^[A-Za-z0-9_.-]{1,64}$/;
const FORMAT = /^[a-z0-9-]{1,30}$/;

/** The schema is larger than what is shown. */
class TooLarge extends Error {}

interface Reading {
  /** References start here. Those that lead elsewhere are left out, and nothing is fetched. */
  readonly document: unknown;
  nodes: number;
  characters: number;
  read: number;
}

/**
 * The schema of a tool's arguments with known keywords alone. Patterns are left out: a validator would run them. Null
 * where it is too large, so that the tool is shown without one.
 */
export function cleanSchema(schema: unknown, document: unknown = schema): Schema | null {
  try {
    const reading = { document, nodes: 0, characters: 0, read: 0 };
    const clean = cleanNode(schema, reading, 0);
    return { ...(isObject(clean) ? clean : {}), type: 'object' };
  } catch (error) {
    if (error instanceof TooLarge) return null;
    throw error;
  }
}

function cleanNode(value: unknown, reading: Reading, depth: number): Schema | boolean {
  reading.nodes += 1;
  if (reading.nodes > MOST_NODES || depth > MOST_DEPTH) throw new TooLarge('the schema is too large');
  if (typeof value === 'boolean') return value;
  const node = followReference(reading.document, value);
  if (!isObject(node)) return {};
  const texts = { title: textIn(node.title, reading), description: textIn(node.description, reading) };
  const entries: [string, unknown][] = [
    ['type', typeIn(node.type)],
    ...Object.entries(texts),
    ['format', typeof node.format === 'string' && FORMAT.test(node.format) ? node.format : undefined],
    ...NUMBERS.map((name): [string, unknown] => [name, Number.isFinite(node[name]) ? node[name] : undefined]),
    ...COUNTS.map((name): [string, unknown] => [name, isCount(node[name]) ? node[name] : undefined]),
    ['enum', Array.isArray(node.enum) ? valuesIn(node.enum, reading) : undefined],
    ['const', scalarIn(node.const, reading)],
    ['default', scalarIn(node.default, reading)],
    ...partsOf(node, reading, depth + 1),
  ];
  return Object.fromEntries(entries.filter(([, part]) => part !== undefined));
}

/** The schemas within a schema. */
function partsOf(node: Record<string, unknown>, reading: Reading, depth: number): [string, unknown][] {
  const one = (name: string): [string, unknown] => [
    name,
    node[name] === undefined ? undefined : cleanNode(node[name], reading, depth),
  ];
  const choices = (name: string): [string, unknown] => {
    const given = node[name];
    if (!Array.isArray(given) || given.length === 0) return [name, undefined];
    if (given.length > MOST_CHOICES) throw new TooLarge(`too many choices in ${name}`);
    return [name, given.map((choice) => cleanNode(choice, reading, depth))];
  };
  const named = isObject(node.properties) ? Object.entries(node.properties) : null;
  if (named && named.length > MOST_NODES) throw new TooLarge('too many properties');
  const properties = named
    ?.filter(([name]) => PROPERTY.test(name))
    .map(([name, property]) => {
      reading.characters += name.length;
      return [name, cleanNode(property, reading, depth)] as const;
    });
  const known = new Set(properties?.map(([name]) => name));
  const required = Array.isArray(node.required) ? node.required.filter((name) => known.has(name)) : [];
  return [
    ['properties', properties && Object.fromEntries(properties)],
    ['required', required.length > 0 ? [...new Set(required)] : undefined],
    one('items'),
    one('additionalProperties'),
    ...['anyOf', 'oneOf', 'allOf'].map(choices),
  ];
}

function typeIn(type: unknown): unknown {
  if (typeof type === 'string') return TYPES.includes(type) ? type : undefined;
  const known = Array.isArray(type) ? TYPES.filter((one) => type.includes(one)) : [];
  return known.length > 0 ? known : undefined;
}

function textIn(value: unknown, reading: Reading): string | undefined {
  const text = cleanText(value, reading);
  count(text, reading);
  return text === '' ? undefined : text;
}

/** One text may be referred to by hundreds of nodes. */
function cleanText(value: unknown, reading: Reading): string {
  reading.read += typeof value === 'string' ? value.length : 0;
  if (reading.read > MOST_READ) throw new TooLarge('too much text to read');
  return plainText(value, MOST_TEXT);
}

function count({ length }: string, reading: Reading): void {
  reading.characters += length;
  if (reading.characters > MOST_CHARACTERS) throw new TooLarge('too much text');
}

/** A value that a model may pass on as it is. Text that cleaning would change is none. */
function scalarIn(value: unknown, reading: Reading): unknown {
  if (typeof value !== 'string') return typeof value === 'boolean' || Number.isFinite(value) ? value : undefined;
  if (value.length > MOST_TEXT || cleanText(value, reading) !== value) return undefined;
  count(value, reading);
  return value;
}

function valuesIn(values: readonly unknown[], reading: Reading): unknown {
  if (values.length > MOST_VALUES) throw new TooLarge('too many values');
  const clean = values.map((value) => (value === null ? null : scalarIn(value, reading)));
  const known = clean.filter((value) => value !== undefined);
  return known.length > 0 ? known : undefined;
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;

/**
 * Controls and invisible characters, by which a text hides words or turns a terminal: the 240 further variation
 * selectors too, one for each byte. Line ends, tabs and the joiners of scripts and emoji stay.
 */
const HIDDEN = /(?![\n\r\t\u200c\u200d])(?:[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Zl}\p{Zp}]|[\u{e0100}-\u{e01ef}])/gu;

/**
 * An answer as a model may read it. JSON keeps its meaning, because hidden characters become its own escapes; of other
 * text they are taken out.
 */
export function cleanAnswer(text: string): string {
  if (!new RegExp(HIDDEN).test(text)) return text;
  return isJson(text) ? text.replace(HIDDEN, escaped) : text.replace(HIDDEN, '');
}

function escaped(character: string): string {
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** A seller's words between quotes that they cannot close. */
export const quoted = (text: string): string => `"${text.replaceAll('"', "'")}"`;

/** Whether a seller's name of a tool can stand in the record and in messages as it is. */
export const isPlainName = (name: unknown): name is string =>
  typeof name === 'string' && /^[\x21-\x7e]{1,128}$/.test(name);

/** A tool's own price by percall's `_meta`; null without one. */
export const priceTextOf = (tool: unknown): string | null => {
  const price = own(own(own(tool, '_meta'), 'percall/price'), 'priceUsd');
  return typeof price === 'string' ? price : null;
};
