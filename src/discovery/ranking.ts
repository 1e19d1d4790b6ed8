import type { DiscoveryIndex } from '../store/sqlite/discovery-index.ts';
import type { Concept } from './question.ts';

/** A matching document, by its position in the indexed list. */
export interface Ranked {
  readonly id: number;
  /** Rounded, so that nearly equal scores are a tie. */
  readonly score: number;
}

interface RankOptions {
  readonly limit: number;
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
const DECIMALS = 1000;

/**
 * Ranks documents by BM25, the best first; ties keep the list's order. Documents below the floor are left out.
 * Each concept counts with its best wording, so synonyms do not add up.
 * A document that matches more concepts comes before one that matches a single concept often.
 */
export function rank(index: DiscoveryIndex, concepts: readonly Concept[], { limit, passes }: RankOptions): Ranked[] {
  const scores = scoreAll(index, concepts);
  const floor = scores.reduce((most, score) => Math.max(most, score), 0) * MIN_OF_BEST;
  const best: Ranked[] = [];
  for (let id = 0; id < scores.length; id++) {
    const score = scores[id] ?? 0;
    const worst = best.length === limit ? best.at(-1) : undefined;
    // On equal scores the earlier document of the list stays.
    if (score === 0 || score < floor || (worst && score <= worst.score) || !passes(id)) continue;
    if (worst) best.pop();
    const at = best.findLastIndex((other) => other.score >= score) + 1;
    best.splice(at, 0, { id, score });
  }
  return best;
}

/** The score of every document, 0 for one that matches too little. Arrays are dense, because a common word occurs in thousands of documents. */
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
      covered[id] = (covered[id] ?? 0) + Math.min(score / FULLY_MATCHED, most);
    }
  }
  return sums.map((sum, id) => {
    const coverage = (covered[id] ?? 0) / asked;
    if (sum === 0 || coverage < MIN_COVERAGE) return 0;
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
