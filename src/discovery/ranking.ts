import type { DiscoveryIndex } from '../store/sqlite/discovery-index.ts';
import type { Concept } from './question.ts';

/** A document that fits, by its place in the indexed list. */
export interface Ranked {
  readonly id: number;
  /** Rounded, so that what is as good as equal is a tie. */
  readonly score: number;
}

interface RankOptions {
  readonly limit: number;
  /** Whether a document may be among the results at all. */
  readonly passes: (id: number) => boolean;
}

/** A document must say at least this share of what is asked for, weighed by how telling each word is … */
const MIN_COVERAGE = 0.25;
/** … and reach at least this share of the best document's score, be that one among the results or not. */
const MIN_OF_BEST = 0.25;
/** How much of a score a document keeps that says next to nothing of what is asked for. */
const KEPT_UNCOVERED = 0.15;
/** What is found half as well as in the best document is as good as said. */
const SAID = 0.5;
const DECIMALS = 1000;

/**
 * Ranks documents by BM25, the best first and ties in the order of the list: for each thing that is asked for its best wording counts, so
 * that synonyms do not add up, and a document that says more of what is asked for comes before one that says a part of it often.
 * Documents below the floor are left out.
 */
export function rank(index: DiscoveryIndex, concepts: readonly Concept[], { limit, passes }: RankOptions): Ranked[] {
  const scores = scoreAll(index, concepts);
  const floor = scores.reduce((most, score) => Math.max(most, score), 0) * MIN_OF_BEST;
  const best: Ranked[] = [];
  for (let id = 0; id < scores.length; id++) {
    const score = scores[id] ?? 0;
    const worst = best.length === limit ? best.at(-1) : undefined;
    // Equal ones that come later in the list stay behind.
    if (score === 0 || score < floor || (worst && score <= worst.score) || !passes(id)) continue;
    if (worst) best.pop();
    const at = best.findLastIndex((other) => other.score >= score) + 1;
    best.splice(at, 0, { id, score });
  }
  return best;
}

/** The score of every document, 0 for those that say too little. Dense arrays: a common word stands in thousands of documents. */
function scoreAll(index: DiscoveryIndex, concepts: readonly Concept[]): Float64Array {
  const sums = new Float64Array(index.size);
  const covered = new Float64Array(index.size);
  let asked = 0;
  for (const concept of concepts) {
    const { found, most } = matchConcept(index, concept);
    if (most === 0) continue;
    asked += most;
    for (let id = 0; id < found.length; id++) {
      const score = found[id] ?? 0;
      if (score === 0) continue;
      sums[id] = (sums[id] ?? 0) + score;
      covered[id] = (covered[id] ?? 0) + Math.min(score / SAID, most);
    }
  }
  return sums.map((sum, id) => {
    const coverage = (covered[id] ?? 0) / asked;
    if (sum === 0 || coverage < MIN_COVERAGE) return 0;
    return Math.round(sum * (KEPT_UNCOVERED + (1 - KEPT_UNCOVERED) * coverage) * DECIMALS) / DECIMALS;
  });
}

/** Each document's best wording, and the best of all. */
function matchConcept(index: DiscoveryIndex, { wordings }: Concept): { found: Float64Array; most: number } {
  const found = new Float64Array(index.size);
  let most = 0;
  for (const { phrase, prefix, weight } of wordings) {
    // Beginnings of words only stand in for words that nobody wrote.
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
