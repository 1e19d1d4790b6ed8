import { type DiscoveryIndex, wordsOf } from './full-text.ts';
import { ASKED_OF_A_NAME, GENERAL_WORDS, SHAPES, STOP_WORDS, SYNONYMS } from './synonyms.ts';

// `readQuestion` reads a query as concepts, each in several wordings. `rank` scores every document by its best wording
// of each, and by the share of the query that it matches.

interface Wording {
  readonly phrase: string;
  readonly weight: number;
  /** The phrase may be the beginning of a word. Tried only while no other wording is found. */
  readonly prefix: boolean;
  /** Whether a match shows what a document is about. "forecast" does not, nor does the beginning of a whole word. */
  readonly names: boolean;
}

interface Concept {
  /**
   * `subject`: a word of the query. `general`: one that fits any subject. `shape`: a word whose form has a meaning.
   * `pair`: what two words mean together. `name`: what looks like one thing's name: "version of react".
   */
  readonly kind: 'subject' | 'general' | 'name' | 'shape' | 'pair';
  readonly wordings: readonly Wording[];
}

const MAX_CONCEPTS = 16;
const MAX_WORD = 40;
const SYNONYM = 0.6;
const PAIR = 0.9;
const SHAPE = 0.7;
const PREFIX = 0.5;
/** Shorter beginnings match too much. */
const MIN_PREFIX = 3;
/** A shorter beginning does not show the subject: `cat` is no category. */
const MIN_NAMING_PREFIX = 4;

/** A query has no syntax. Empty when there is nothing to search for. */
export function readQuestion(text: string): Concept[] {
  const words = placeNames(text.replace(ASKING, '').split(/\s+/).flatMap(readWord));
  const meaningful = words.filter(
    ({ word, means }) => means.length > 0 || (!STOP_WORDS.has(word) && !/^\d+$/.test(word)),
  );
  // Stop words alone, such as "who is it", are searched.
  const used = meaningful.length > 0 ? meaningful : words;
  const pairs = new Set([words, used].flatMap((list) => pairsOf(list.map(({ inPairs }) => inPairs))));
  // "example.com up" asks for a site, and not for a domain.
  const isPaired = ({ inPairs }: Word) => [...pairs].some((pair) => pair.split(' ').includes(inPairs));
  const meant = new Set(used.filter((word) => !isPaired(word)).flatMap(({ means }) => means));
  return [
    ...used.map((word, at) => conceptOf(word, at === used.length - 1)),
    ...askedOfNames(words),
    ...[...meant].map((phrase) => meaning('shape', [phrase], SHAPE)),
    ...[...pairs].map((pair) => meaning('pair', entryOf(pair) ?? [], PAIR)),
  ].slice(0, MAX_CONCEPTS);
}

interface Word {
  readonly word: string;
  readonly means: readonly string[];
  readonly inPairs: string;
  /** Whether it is written with a capital letter, or joined by signs as in left-pad. */
  readonly looksNamed: boolean;
}

/** Reads between two spaces: one word whose form has a meaning, or the words between punctuation. */
function readWord(raw: string): Word[] {
  const bare = raw.replace(/^e-mail/i, 'email').replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, '');
  const shape = SHAPES.find(({ form }) => form.test(bare));
  const words = wordsOf(bare).filter((word) => word.length <= MAX_WORD);
  if (shape) return [{ word: words.join(' '), means: shape.means, inPairs: shape.inPairs, looksNamed: false }];
  const looksNamed = words.length > 1 || /^\p{Lu}/u.test(bare);
  return words.map((word) => ({ word, means: [], inPairs: word, looksNamed }));
}

interface PlacedWord extends Word {
  readonly isName: boolean;
}

const TABLE_WORDS: ReadonlySet<string> = new Set(
  [...Object.keys(SYNONYMS), ...Object.values(SYNONYMS).flat()].flatMap((phrase) => phrase.split(' ')),
);
const ARTICLES: ReadonlySet<string> = new Set(['a', 'an', 'the']);
/** A name may stand after these: "version of react", "is lodash vulnerable". */
const BEFORE_NAMES: ReadonlySet<string> = new Set(
  'of for about in on at from to by with is are was were does do did has have named called'.split(' '),
);
/** "Please check whether …" says that something is asked, not what. */
const ASKING = new RegExp(
  [
    /^\s*(please\s+)?((i|we)\s+(want|need|would like)\s+to\s+)?/,
    /(check|confirm|determine|figure out|find out|know|learn|look up|make sure|see|tell me|test|verify|work out)\s+/,
    /(?=(how|if|that|what|when|where|whether|which|who|whose|why)\b)/,
  ]
    .map(({ source }) => source)
    .join(''),
  'i',
);

/** Names are words that no table has, and that stand where names stand, look like one, or go on with one. */
function placeNames(words: readonly Word[]): PlacedWord[] {
  const placed: PlacedWord[] = [];
  for (const word of words) {
    const before = placed.filter(({ word }) => word !== 'the').at(-1);
    const isPlaced = before !== undefined && (before.isName || BEFORE_NAMES.has(before.word) || word.looksNamed);
    const isName = isPlaced && !isKnownWord(word);
    // "Marie Curie" is searched as a whole, because another Marie does not match.
    if (isName && word.looksNamed && before.isName && before.looksNamed && before === placed.at(-1)) {
      placed[placed.length - 1] = { ...before, word: `${before.word} ${word.word}` };
    } else {
      placed.push({ ...word, isName });
    }
  }
  return placed;
}

function isKnownWord({ word, means }: Word): boolean {
  if (means.length > 0 || STOP_WORDS.has(word) || isGeneral(word)) return true;
  return TABLE_WORDS.has(word) || TABLE_WORDS.has(singular(word));
}

function conceptOf(placed: PlacedWord, isLast: boolean): Concept {
  const { word } = placed;
  const kind = kindOf(placed);
  const synonyms = entryOf(word) ?? entryOf(singular(word)) ?? [];
  const itself = { phrase: word, weight: 1, prefix: false, names: true };
  const wordings = [itself, ...wordingsOf(synonyms, SYNONYM)];
  // The last word may be incomplete. Another word is completed only when it has no synonyms.
  const mayGoOn = word.length >= MIN_PREFIX && (isLast || synonyms.length === 0);
  const mayName = isLast && kind !== 'name' && word.length >= MIN_NAMING_PREFIX;
  const beginning = { phrase: word, weight: PREFIX, prefix: true, names: mayName };
  return { kind, wordings: mayGoOn ? [...wordings, beginning] : wordings };
}

/** A word whose form has a meaning, such as an address, is an instance: the form names the subject. */
function kindOf({ word, means, isName }: PlacedWord): Concept['kind'] {
  if (means.length > 0) return 'shape';
  if (isName) return 'name';
  return isGeneral(word) ? 'general' : 'subject';
}

function isGeneral(phrase: string): boolean {
  return phrase.split(' ').every((word) => GENERAL_WORDS.has(word) || GENERAL_WORDS.has(singular(word)));
}

function wordingsOf(phrases: readonly string[], weight: number): Wording[] {
  return phrases.map((phrase) => ({ phrase, weight, prefix: false, names: !isGeneral(phrase) }));
}

function meaning(kind: Concept['kind'], phrases: readonly string[], weight: number): Concept {
  return { kind, wordings: wordingsOf(phrases, weight) };
}

/** What is asked of a name: by two words before it, such as "who was", or by one anywhere, such as "history". */
function askedOfNames(words: readonly PlacedWord[]): Concept[] {
  const inOrder = words.filter(({ word }) => !ARTICLES.has(word));
  if (!inOrder.some(({ isName }) => isName)) return [];
  const asked = inOrder.flatMap(({ word }, at) => {
    // A verb may stand between: "how old is Rome".
    const isBeforeName = inOrder.slice(at + 2, at + 4).some(({ isName }) => isName);
    const pair = isBeforeName ? ownEntry(ASKED_OF_A_NAME, `${word} ${inOrder[at + 1]?.word}`) : undefined;
    return [pair, ownEntry(ASKED_OF_A_NAME, word)].filter((phrases) => phrases !== undefined);
  });
  return asked.slice(0, 1).map((phrases) => ({ kind: 'subject', wordings: wordingsOf(phrases, PAIR) }));
}

function pairsOf(words: readonly string[]): string[] {
  return words.slice(1).flatMap((second, at) => {
    const spellings = [`${words[at]} ${second}`, `${words[at]} ${singular(second)}`];
    return spellings.filter((pair) => entryOf(pair)).slice(0, 1);
  });
}

function entryOf(key: string): readonly string[] | undefined {
  return ownEntry(SYNONYMS, key);
}

/** `hasOwn`, because a query may hold `constructor`. */
function ownEntry(table: Readonly<Record<string, readonly string[]>>, key: string): readonly string[] | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined;
}

function singular(word: string): string {
  return word
    .replace(/ies$/, 'y')
    .replace(/(s|x|ch|sh)es$/, '$1')
    .replace(/(?<!s)s$/, '');
}

interface Ranked {
  readonly id: number;
  readonly score: number;
}

export interface RankedPart {
  readonly ranked: readonly Ranked[];
  readonly total: number;
}

interface RankOptions {
  readonly limit: number;
  readonly offset?: number;
  readonly passes: (id: number) => boolean;
}

/** The least share of the query that a document must match. Each concept counts by how rare it is. */
const MIN_COVERAGE = 0.25;
const MIN_OF_BEST = 0.25;
/** What a document keeps of its score when it matches next to nothing of the query. */
const UNMATCHED_SHARE = 0.15;
const FULLY_MATCHED = 0.5;
/** A general word and a name tell less of what is asked for than a subject. */
const SHARE: Readonly<Record<Concept['kind'], number>> = { subject: 1, general: 0.5, name: 0.5, shape: 1, pair: 1 };
const DECIMALS = 1000;
/** The least weighted share of the query's words when no document knows a subject of it. */
const MIN_WORDS = 0.25;

/**
 * Ranks by BM25, the best first; ties keep the list's order. A concept counts with its best wording, so that synonyms
 * do not add up. When no document knows a subject, another must match: "weather forecast" finds no forecast of fees.
 */
export function rank(
  index: DiscoveryIndex,
  concepts: readonly Concept[],
  { limit, offset = 0, passes }: RankOptions,
): RankedPart {
  const scores = scoreAll(index, concepts);
  const floor = scores.reduce((most, score) => Math.max(most, score), 0) * MIN_OF_BEST;
  const all: Ranked[] = [];
  for (let id = 0; id < scores.length; id++) {
    const score = scores[id] ?? 0;
    if (score > 0 && score >= floor && passes(id)) all.push({ id, score });
  }
  all.sort((a, b) => b.score - a.score);
  return { ranked: all.slice(offset, offset + limit), total: all.length };
}

/** A score is 0 when a document matches too little. Arrays are dense: a common word is in thousands of documents. */
function scoreAll(index: DiscoveryIndex, concepts: readonly Concept[]): Float64Array {
  const sums = new Float64Array(index.size);
  const covered = new Float64Array(index.size);
  let asked = 0;
  for (const concept of concepts) {
    const { found, most } = matchConcept(index, concept);
    if (most === 0) continue;
    const share = SHARE[concept.kind];
    asked += most * share;
    for (let id = 0; id < found.length; id++) {
      const score = (found[id] ?? 0) * share;
      if (score === 0) continue;
      sums[id] = (sums[id] ?? 0) + score;
      covered[id] = (covered[id] ?? 0) + Math.min(score / FULLY_MATCHED, most * share);
    }
  }
  const answers = subjectTest(index, concepts);
  return sums.map((sum, id) => {
    if (sum === 0) return 0;
    const coverage = (covered[id] ?? 0) / asked;
    if (coverage < MIN_COVERAGE || !answers(id)) return 0;
    return Math.round(sum * (UNMATCHED_SHARE + (1 - UNMATCHED_SHARE) * coverage) * DECIMALS) / DECIMALS;
  });
}

function matchConcept(index: DiscoveryIndex, { wordings }: Concept): { found: Float64Array; most: number } {
  const found = new Float64Array(index.size);
  let most = 0;
  for (const { phrase, prefix, weight } of wordings) {
    if (prefix && most > 0) continue;
    const { ids, scores } = index.match(phrase, prefix);
    for (let n = 0; n < ids.length; n++) {
      const id = ids[n] ?? 0;
      const weighed = (scores[n] ?? 0) * weight;
      if (weighed > (found[id] ?? 0)) found[id] = weighed;
      if (weighed > most) most = weighed;
    }
  }
  return { found, most };
}

/**
 * While some document knows each subject and name of the query, every document passes. Otherwise one must match a
 * subject, and enough of the query's words.
 */
function subjectTest(index: DiscoveryIndex, concepts: readonly Concept[]): (id: number) => boolean {
  const namings = concepts.map((concept) => ({ concept, matches: namingMatches(index, concept) }));
  const unknown = namings.filter(({ matches }) => matches.length === 0).map(({ concept }) => concept.kind);
  if (!unknown.includes('subject') && !unknown.includes('name')) return () => true;
  const words = new Float64Array(index.size);
  const subjects = new Uint8Array(index.size);
  for (const { concept, matches } of namings) {
    const best = new Map<number, number>();
    for (const { ids, weight } of matches) {
      for (const id of ids) best.set(id, Math.max(weight, best.get(id) ?? 0));
    }
    for (const [id, weight] of best) {
      if (concept.kind !== 'shape') words[id] = (words[id] ?? 0) + weight;
      if (concept.kind !== 'general') subjects[id] = 1;
    }
  }
  const counted = namings.filter(({ concept: { kind }, matches }) => {
    if (kind === 'name') return matches.length > 0;
    return kind !== 'shape' && kind !== 'pair';
  });
  // A name that no document knows is a parameter's value. It counts as one word, however many it has.
  const wordCount = counted.length + (unknown.includes('name') ? 1 : 0);
  return (id) => subjects[id] === 1 && (words[id] ?? 0) / wordCount >= MIN_WORDS;
}

function namingMatches(index: DiscoveryIndex, { wordings }: Concept): { ids: Int32Array; weight: number }[] {
  const matches: { ids: Int32Array; weight: number }[] = [];
  let isFound = false;
  for (const { phrase, prefix, weight, names } of wordings) {
    if (prefix && isFound) continue;
    const { ids } = index.match(phrase, prefix);
    if (ids.length > 0) isFound = true;
    if (names && ids.length > 0) matches.push({ ids, weight });
  }
  return matches;
}
