// What third parties sent. Nothing here throws, and nothing runs a value's own code.

/** A property that only the value's own code could read. It equals no JSON value. */
export const UNREADABLE: unique symbol = Symbol('unreadable');

/** An own data property; undefined without one. Without prototype and accessor, `__proto__` is ordinary data. */
export function own(value: unknown, key: PropertyKey): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  try {
    const property = Object.getOwnPropertyDescriptor(value, key);
    return property && (Object.hasOwn(property, 'value') ? property.value : UNREADABLE);
  } catch {
    return UNREADABLE;
  }
}

/** Symbols and non-enumerable ones too. Null for no object, and for a proxy that throws. */
export function ownKeys(value: unknown): readonly PropertyKey[] | null {
  if (typeof value !== 'object' || value === null) return null;
  try {
    return Reflect.ownKeys(value);
  } catch {
    return null;
  }
}

/** No array, no null. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The most references in a row, steps of one, and characters of these. */
const MAX_HOPS = 5;
const [MAX_STEPS, MAX_REFERENCE] = [10, 1000];

/** Within the JSON document. An external or circular reference is undefined. Nothing is fetched. */
export function followReference(document: unknown, value: unknown): unknown {
  let target = value;
  for (let hops = 0; hops <= MAX_HOPS; hops += 1) {
    const reference = own(target, '$ref');
    if (typeof reference !== 'string') return target;
    if (!reference.startsWith('#/')) return undefined;
    const steps = reference.slice(2, MAX_REFERENCE).split('/', MAX_STEPS);
    target = steps.reduce<unknown>((at, step) => own(at, step.replaceAll('~1', '/').replaceAll('~0', '~')), document);
  }
  return undefined;
}

/** Enough for every field. */
const READ_AT_MOST = 20_000;

/** Control, invisible and direction-changing characters (zero-width, tags, private use). */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;
const MARKUP = /<\/?[a-zA-Z!?][^<>]*>/g;

/** One line of at most `max` UTF-16 units. No angle bracket remains, so it cannot become HTML. */
export function plainText(value: unknown, max: number): string {
  if (typeof value !== 'string') return '';
  const line = value
    .slice(0, READ_AT_MOST)
    .toWellFormed()
    .replace(/[\t\n\v\f\r]/g, ' ')
    .replace(UNSEEN, '')
    .replace(MARKUP, ' ')
    .replace(/[<>]/g, ' ')
    .replace(/ {2,}/g, ' ')
    .trim();
  return line.length <= max ? line : cut(line, max);
}

/** Never inside a surrogate pair. */
function cut(line: string, max: number): string {
  const end = /[\uD800-\uDBFF]/.test(line.charAt(max - 2)) ? max - 2 : max - 1;
  return `${line.slice(0, end).trimEnd()}…`;
}

export function jsonOrNull(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8'));
  } catch {
    return null;
  }
}

/** Undefined, which no JSON is, for other text. */
export function jsonOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export interface Clipped {
  readonly text: string;
  /** Unicode code points, as JSON Schema counts. */
  readonly characters: number;
  readonly truncated: boolean;
}

/** At most `max` code points. A lone surrogate becomes U+FFFD: parsers may refuse it. */
export function clipText(text: string, max: number): Clipped {
  let units = 0;
  let characters = 0;
  while (units < text.length && characters < max) {
    units += (text.codePointAt(units) ?? 0) > 0xffff ? 2 : 1;
    characters += 1;
  }
  return { text: text.slice(0, units).toWellFormed(), characters, truncated: units < text.length };
}
