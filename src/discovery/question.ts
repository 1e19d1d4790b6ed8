import { wordsOf } from '../store/sqlite/discovery-index.ts';
import { GENERAL_WORDS, SHAPES, STOP_WORDS, SYNONYMS } from './synonyms.ts';

/** One wording of a concept, and its weight. The searcher's own word has weight 1. */
export interface Wording {
  readonly phrase: string;
  readonly weight: number;
  /** The phrase may be the beginning of a word. Tried only while no other wording is found. */
  readonly prefix: boolean;
  /** Whether a match shows what the document is about. A general word such as "forecast" does not, nor does the beginning of a complete word. */
  readonly names: boolean;
}

/** One concept of a query, in all its wordings. A document scores by its best wording. */
export interface Concept {
  /** `subject`: a word of the query. `general`: one that may be asked of any subject. `implied`: by a word's form, or by a pair of words. */
  readonly kind: 'subject' | 'general' | 'implied';
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
/** A shorter beginning does not show the subject: `cat` is no category. */
const MIN_NAMING_PREFIX = 4;

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
    ...used.map(({ word, means }, at) => conceptOf(word, kindOf(word, means), at === used.length - 1)),
    ...[...meant].map((phrase) => implied([phrase], SHAPE)),
    ...[...pairs].map((pair) => implied(entryOf(pair) ?? [], PAIR)),
  ].slice(0, MAX_CONCEPTS);
}

/** Reads the text between two spaces: one word whose form has a meaning, or the words between punctuation. */
function readWord(raw: string): Word[] {
  const bare = raw.replace(/^e-mail/i, 'email').replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, '');
  const means = SHAPES.find(({ form }) => form.test(bare))?.means ?? [];
  const words = wordsOf(bare).filter((word) => word.length <= MAX_WORD);
  if (means.length > 0) return [{ word: words.join(' '), means }];
  return words.map((word) => ({ word, means }));
}

/** A word with a meaning by its form, such as an address, is an instance. The form names the subject. */
function kindOf(word: string, means: readonly string[]): Concept['kind'] {
  if (means.length > 0) return 'implied';
  return isGeneral(word) ? 'general' : 'subject';
}

function isGeneral(phrase: string): boolean {
  return phrase.split(' ').every((word) => GENERAL_WORDS.has(word) || GENERAL_WORDS.has(singular(word)));
}

function conceptOf(word: string, kind: Concept['kind'], isLast: boolean): Concept {
  const synonyms = entryOf(word) ?? entryOf(singular(word)) ?? [];
  const itself = { phrase: word, weight: 1, prefix: false, names: true };
  const wordings = [itself, ...wordingsOf(synonyms, SYNONYM)];
  // The last word may be incomplete. Any other word is completed only when the table has no synonyms for it.
  const mayGoOn = word.length >= MIN_PREFIX && (isLast || synonyms.length === 0);
  const beginning = { phrase: word, weight: PREFIX, prefix: true, names: isLast && word.length >= MIN_NAMING_PREFIX };
  return { kind, wordings: mayGoOn ? [...wordings, beginning] : wordings };
}

function implied(phrases: readonly string[], weight: number): Concept {
  return { kind: 'implied', wordings: wordingsOf(phrases, weight) };
}

function wordingsOf(phrases: readonly string[], weight: number): Wording[] {
  return phrases.map((phrase) => ({ phrase, weight, prefix: false, names: !isGeneral(phrase) }));
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
