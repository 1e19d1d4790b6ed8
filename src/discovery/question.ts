import { wordsOf } from '../store/sqlite/discovery-index.ts';
import { SHAPES, STOP_WORDS, SYNONYMS } from './synonyms.ts';

/** One wording of a concept, and its weight. The searcher's own word has weight 1. */
export interface Wording {
  readonly phrase: string;
  readonly weight: number;
  /** The phrase may be the beginning of a word. Tried only while no other wording is found. */
  readonly prefix: boolean;
}

/** One concept of a query, in all its wordings. A document scores by its best wording. */
export interface Concept {
  readonly wordings: readonly Wording[];
}

/** The most concepts of one query. Each costs index lookups. */
const MAX_CONCEPTS = 16;
/** Longer words are ignored. */
const MAX_WORD = 40;
const SYNONYM = 0.6;
const PAIR = 0.9;
const SHAPE = 0.7;
const PREFIX = 0.5;
/** Shorter beginnings match too much. */
const MIN_PREFIX = 3;

interface Word {
  readonly word: string;
  /** The concepts that the word's form implies, such as an address. */
  readonly means: readonly string[];
}

/** Reads a free-text query; it has no syntax. Empty when there is nothing to search for. */
export function readQuestion(text: string): Concept[] {
  const words = text.split(/\s+/).flatMap(readWord);
  const meaningful = words.filter(
    ({ word, means }) => means.length > 0 || (!STOP_WORDS.has(word) && !/^\d+$/.test(word)),
  );
  // A query of stop words alone, such as "who is it", is searched with them.
  const used = meaningful.length > 0 ? meaningful : words;
  const meant = new Set(used.flatMap(({ means }) => means));
  const pairs = new Set([words, used].flatMap((list) => pairsOf(list.map(({ word }) => word))));
  return [
    ...used.map(({ word }, at) => conceptOf(word, at === used.length - 1)),
    ...[...meant].map((phrase) => conceptOfPhrases([phrase], SHAPE)),
    ...[...pairs].map((pair) => conceptOfPhrases(entryOf(pair) ?? [], PAIR)),
  ].slice(0, MAX_CONCEPTS);
}

/** Reads the text between two spaces: one word whose form has a meaning, or the words between punctuation. */
function readWord(raw: string): Word[] {
  const bare = raw.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, '');
  const means = SHAPES.find(({ form }) => form.test(bare))?.means ?? [];
  const words = wordsOf(bare).filter((word) => word.length <= MAX_WORD);
  if (means.length > 0) return [{ word: words.join(' '), means }];
  return words.map((word) => ({ word, means }));
}

function conceptOf(word: string, isLast: boolean): Concept {
  const synonyms = entryOf(word) ?? entryOf(singular(word)) ?? [];
  const wordings = [...conceptOfPhrases([word], 1).wordings, ...conceptOfPhrases(synonyms, SYNONYM).wordings];
  // The last word may be incomplete. Any other word is completed only when the table has no synonyms for it.
  const mayGoOn = word.length >= MIN_PREFIX && (isLast || synonyms.length === 0);
  return { wordings: mayGoOn ? [...wordings, { phrase: word, weight: PREFIX, prefix: true }] : wordings };
}

function conceptOfPhrases(phrases: readonly string[], weight: number): Concept {
  return { wordings: phrases.map((phrase) => ({ phrase, weight, prefix: false })) };
}

/** Pairs of neighbouring words that have an entry in the table, such as "smart contract". */
function pairsOf(words: readonly string[]): string[] {
  return words.slice(1).flatMap((second, at) => {
    const spellings = [`${words[at]} ${second}`, `${words[at]} ${singular(second)}`];
    return spellings.filter((pair) => entryOf(pair)).slice(0, 1);
  });
}

/** The table's own entry. `hasOwn`, because a query may hold `constructor`. */
function entryOf(key: string): readonly string[] | undefined {
  return Object.hasOwn(SYNONYMS, key) ? SYNONYMS[key] : undefined;
}

function singular(word: string): string {
  return word
    .replace(/ies$/, 'y')
    .replace(/(s|x|ch|sh)es$/, '$1')
    .replace(/(?<!s)s$/, '');
}
