import { own, ownKeys, plainText } from '../../lib/untrusted.ts';

/** The most text that is kept of each field, in UTF-16 units: what a list can show and what a search should weigh. */
export const TEXT_LIMITS = { name: 100, label: 60, description: 500, category: 40, keywords: 400, word: 60 };

const MAX_TAGS = 5;
const MAX_DEPTH = 4;
const MAX_WORDS = 60;

/** The first few of a seller's tags, each as plain text. */
export function readTags(value: unknown): string[] {
  const tags = listOf(value).slice(0, MAX_TAGS);
  return tags.map((tag) => plainText(tag, TEXT_LIMITS.category)).filter((tag) => tag !== '');
}

/** Search keywords of a route: its tags and the names of its answer's members, where `windSpeed` becomes "wind speed". */
export function keywordsOf(tags: readonly string[], answer: unknown): string {
  const words = new Set(tags);
  const collect = (given: unknown, depth: number): void => {
    const value = Array.isArray(given) ? given[0] : given;
    for (const key of (ownKeys(value) ?? []).slice(0, MAX_WORDS)) {
      if (words.size >= MAX_WORDS) return;
      words.add(plainText(asWords(String(key)), TEXT_LIMITS.word));
      if (depth < MAX_DEPTH) collect(own(value, key), depth + 1);
    }
  };
  collect(answer, 1);
  return plainText([...words].join(' '), TEXT_LIMITS.keywords);
}

function asWords(name: string): string {
  return name
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .replace(/[_.-]+/g, ' ')
    .toLowerCase();
}

/** The value if it is an array, else an empty array. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Whether a value is an object with named members. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
