import { wordsOf } from '../store/sqlite/discovery-index.ts';
import { SHAPES, STOP_WORDS, SYNONYMS } from './synonyms.ts';

/** One way to say a thing, and how much finding it so counts: 1 for the person's own word. */
export interface Wording {
  readonly phrase: string;
  readonly weight: number;
  /** The phrase may be the beginning of a word; only tried while nothing else is found. */
  readonly prefix: boolean;
}

/** One thing that is asked for, in all its wordings; a document is as good as its best one. */
export interface Concept {
  readonly wordings: readonly Wording[];
}

/** More than this is a text, not a question; each costs look-ups. */
const MAX_CONCEPTS = 16;
/** A word that is longer is none. */
const MAX_WORD = 40;
const SYNONYM = 0.6;
const PAIR = 0.9;
const SHAPE = 0.7;
const PREFIX = 0.5;
/** Shorter beginnings fit too much. */
const MIN_PREFIX = 3;

interface Word {
  readonly word: string;
  /** What its form says that it is. */
  readonly means: readonly string[];
}

/** Reads a question in anybody's words: none of them is syntax. Empty when there is nothing to look for. */
export function readQuestion(text: string): Concept[] {
  const words = text.split(/\s+/).flatMap(readWord);
  const telling = words.filter(({ word, means }) => means.length > 0 || (!STOP_WORDS.has(word) && !/^\d+$/.test(word)));
  // "who is it" still deserves an attempt.
  const used = telling.length > 0 ? telling : words;
  const meant = new Set(used.flatMap(({ means }) => means));
  const pairs = new Set([words, used].flatMap((list) => pairsOf(list.map(({ word }) => word))));
  return [
    ...used.map(({ word }, at) => conceptOf(word, at === used.length - 1)),
    ...[...meant].map((phrase) => said([phrase], SHAPE)),
    ...[...pairs].map((pair) => said(entryOf(pair) ?? [], PAIR)),
  ].slice(0, MAX_CONCEPTS);
}

/** What stands between two spaces: one word with a meaning by its form, or the words that punctuation separates. */
function readWord(raw: string): Word[] {
  const bare = raw.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, '');
  const means = SHAPES.find(({ form }) => form.test(bare))?.means ?? [];
  const words = wordsOf(bare).filter((word) => word.length <= MAX_WORD);
  if (means.length > 0) return [{ word: words.join(' '), means }];
  return words.map((word) => ({ word, means }));
}

function conceptOf(word: string, isLast: boolean): Concept {
  const synonyms = entryOf(word) ?? entryOf(singular(word)) ?? [];
  const wordings = [...said([word], 1).wordings, ...said(synonyms, SYNONYM).wordings];
  // The last word may still be being typed; any other is completed only when nobody ever wrote it so.
  const mayGoOn = word.length >= MIN_PREFIX && (isLast || synonyms.length === 0);
  return { wordings: mayGoOn ? [...wordings, { phrase: word, weight: PREFIX, prefix: true }] : wordings };
}

function said(phrases: readonly string[], weight: number): Concept {
  return { wordings: phrases.map((phrase) => ({ phrase, weight, prefix: false })) };
}

/** Pairs of neighbours that mean something of their own, such as "smart contract", as they stand in the table. */
function pairsOf(words: readonly string[]): string[] {
  return words.slice(1).flatMap((second, at) => {
    const spellings = [`${words[at]} ${second}`, `${words[at]} ${singular(second)}`];
    return spellings.filter((pair) => entryOf(pair)).slice(0, 1);
  });
}

/** The table's own entry: `constructor` is a word like any other. */
function entryOf(key: string): readonly string[] | undefined {
  return Object.hasOwn(SYNONYMS, key) ? SYNONYMS[key] : undefined;
}

function singular(word: string): string {
  return word
    .replace(/ies$/, 'y')
    .replace(/(s|x|ch|sh)es$/, '$1')
    .replace(/(?<!s)s$/, '');
}
