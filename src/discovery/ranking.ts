import type { DiscoveryIndex } from '../store/sqlite/discovery-index.ts';
import type { Concept } from './question.ts';

/** A matching document, by its position in the indexed list. */
export interface Ranked {
  readonly id: number;
  /** Rounded, so that nearly equal scores are a tie. */
  readonly score: number;
}

/** A part of the ranked documents, and the number of all. */
export interface RankedPart {
  readonly ranked: readonly Ranked[];
  readonly total: number;
}

interface RankOptions {
  readonly limit: number;
  /** How many of the best to leave out first. */
  readonly offset?: number;
  /** Whether a document may be among the results. */
  readonly passes: (id: number) => boolean;
}

/** The least share of the query that a document must match. Each concept counts by how rare it is. */
const MIN_COVERAGE = 0.25;
/** The least share of the best document's score that a result needs, even when the best document itself is filtered out. */
const MIN_OF_BEST = 0.25;
/** The share of its score that a document keeps when it matches next to nothing of the query. */
const UNMATCHED_SHARE = 0.15;
/** A concept that scores half as well as in the best document counts as fully matched. */
const FULLY_MATCHED = 0.5;
/** How much a concept counts beside a subject. A general word and a name tell less of what is asked for. */
const SHARE: Readonly<Record<Concept['kind'], number>> = { subject: 1, general: 0.5, name: 0.5, shape: 1, pair: 1 };
const DECIMALS = 1000;
/** The least share of the query's words that a document must have when no document knows one of the subjects. A synonym counts by its weight. */
const MIN_WORDS = 0.25;

/**
 * Ranks documents by BM25, the best first; ties keep the list's order. Documents below the floor are left out.
 * Each concept counts with its best wording, so synonyms do not add up.
 * A document that matches more concepts comes before one that matches a single concept often.
 * When no document knows one of the query's subjects, a document must match another subject: "weather forecast" does not find a forecast of fees.
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
  // The sort is stable, so the earlier document of the list stays first on equal scores.
  all.sort((a, b) => b.score - a.score);
  return { ranked: all.slice(offset, offset + limit), total: all.length };
}

/** The score of every document, 0 for one that matches too little. Arrays are dense, because a common word occurs in thousands of documents. */
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

/** Each document's score with its best wording, and the highest of all. */
function matchConcept(index: DiscoveryIndex, { wordings }: Concept): { found: Float64Array; most: number } {
  const found = new Float64Array(index.size);
  let most = 0;
  for (const { phrase, prefix, weight } of wordings) {
    // Word beginnings are tried only when no full wording matched.
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
 * The test of a document's subject. Every document passes while each subject and each name of the query is known to
 * some document, which is the usual case and costs nothing. Otherwise a document must match a subject, and enough of
 * the query's words. The matches are the ones that the scores have asked for.
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
  // A name that no document knows is a value for a parameter. It counts as one word, however many it has.
  const wordCount = counted.length + (unknown.includes('name') ? 1 : 0);
  return (id) => subjects[id] === 1 && (words[id] ?? 0) / wordCount >= MIN_WORDS;
}

/** The matches that show what a document is about, by wording. A word's beginning counts only when no other wording was found. */
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
