import type { Entry } from './entry.ts';
import { plainText } from './plain-text.ts';

/** How much of a seller's words is kept, in UTF-16 units: what a list can show and a search should weigh. */
export const TEXT_LIMITS = { name: 100, label: 60, description: 500, category: 40, keywords: 400, param: 60, hint: 200 };

/** Of one value: an example is a hint, not a document. */
const MAX_DEPTH = 4;
const MAX_MEMBERS = 20;
const MAX_NODES = 60;

/** A JSON value as an entry carries it. */
export type Json = Entry['body'];

/**
 * A seller's JSON value with every text and name in it plain and capped, and no more of it than a hint needs; null for what is no JSON value.
 * Bounded in depth and number before anything else touches it, so that no nesting can break whoever serialises it.
 */
export function plainJson(value: unknown): Json {
  let nodes = 0;
  const copy = (given: unknown, depth: number): Json => {
    nodes += 1;
    if (nodes > MAX_NODES || depth > MAX_DEPTH) return null;
    if (typeof given === 'string') return plainText(given, TEXT_LIMITS.hint);
    if (typeof given === 'boolean' || (typeof given === 'number' && Number.isFinite(given))) return given;
    if (Array.isArray(given)) return given.slice(0, MAX_MEMBERS).map((inner) => copy(inner, depth + 1));
    if (typeof given !== 'object' || given === null) return null;
    return Object.fromEntries(membersOf(given).map(([key, inner]) => [key, copy(inner, depth + 1)]));
  };
  return copy(value, 0);
}

/** An object's members under plain names, the first few; a name that says nothing when it is plain is left out. */
export function membersOf(value: unknown, max = MAX_MEMBERS): [string, unknown][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  const named = Object.entries(value).slice(0, max);
  return named.filter(([key]) => key !== '__proto__' && key !== '' && plainText(key, TEXT_LIMITS.param) === key);
}

/** The names in a JSON value as words that it may be found by: `windSpeed` is found by "wind speed". */
export function wordsOfNames(value: unknown): string {
  const words = new Set<string>();
  const collect = (given: unknown, depth: number): void => {
    if (depth > MAX_DEPTH || words.size >= MAX_NODES) return;
    for (const [key, inner] of membersOf(Array.isArray(given) ? given[0] : given)) {
      words.add(key.replace(/([a-z\d])([A-Z])/g, '$1 $2').replace(/[_.-]+/g, ' ').toLowerCase());
      collect(inner, depth + 1);
    }
  };
  collect(value, 0);
  return [...words].join(' ');
}
