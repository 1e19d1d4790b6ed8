import type { DiscoveryIndex } from '../store/discovery-index.ts';
import type { Concept } from './question.ts';

/** A document that fits, by its place in the indexed list. */
export interface Ranked {
  readonly id: number;
  /** Rounded, so that what is as good as equal is a tie. */
  readonly score: number;
}

/** A document must say at least this share of what is asked for, weighed by how telling each word is … */
const MIN_COVERAGE = 0.25;
/** … and reach at least this share of the best document's score. */
const MIN_OF_BEST = 0.25;
/** How much of a score a document keeps that says next to nothing of what is asked for. */
const KEPT_UNCOVERED = 0.15;
/** What counts as found at all: BM25 of a word that stands in half of all documents is next to nothing. */
const LEAST = 1e-4;

/**
 * Ranks documents by BM25: for each thing that is asked for its best wording counts, so that synonyms do not add up, and a document that
 * says more of what is asked for comes before one that says a part of it often. Those below the floor are left out. In no order.
 */
export function rank(index: DiscoveryIndex, concepts: readonly Concept[]): Ranked[] {
  const sums = new Map<number, { score: number; covered: number }>();
  let asked = 0;
  for (const concept of concepts) {
    const found = matchConcept(index, concept);
    const most = Math.max(0, ...found.values());
    if (most < LEAST) continue;
    asked += most;
    for (const [id, score] of found) {
      const sum = sums.get(id) ?? { score: 0, covered: 0 };
      sum.score += score;
      // Half as good as the best is as good as said.
      sum.covered += Math.min(score * 2, most);
      sums.set(id, sum);
    }
  }
  const ranked = [...sums].flatMap(([id, { score, covered }]) => {
    const coverage = covered / asked;
    if (coverage < MIN_COVERAGE) return [];
    return [{ id, score: Math.round(score * (KEPT_UNCOVERED + (1 - KEPT_UNCOVERED) * coverage) * 1000) / 1000 }];
  });
  const best = ranked.reduce((most, { score }) => Math.max(most, score), 0);
  return ranked.filter(({ score }) => score > 0 && score >= best * MIN_OF_BEST);
}

/** Each document's best wording. */
function matchConcept(index: DiscoveryIndex, { wordings }: Concept): Map<number, number> {
  const best = new Map<number, number>();
  for (const { phrase, prefix, weight } of wordings) {
    // Beginnings of words only stand in for words that nobody wrote.
    if (prefix && best.size > 0) continue;
    for (const { id, score } of index.match(phrase, prefix)) {
      const weighed = score * weight;
      if (weighed > (best.get(id) ?? 0)) best.set(id, weighed);
    }
  }
  return best;
}
