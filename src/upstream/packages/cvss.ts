import cvss from 'ae-cvss-calculator';

// Node cannot detect the named exports of this CommonJS bundle, so they are read from the default export.
const { Cvss3P0, Cvss3P1, Cvss4P0 } = cvss;

/** CVSS's qualitative ratings (v3.1 section 5, v4.0 section 6), in lower case. */
export const SEVERITY_LABELS = ['none', 'low', 'medium', 'high', 'critical'] as const;
export type SeverityLabel = (typeof SEVERITY_LABELS)[number];

/** Longer than any valid vector. The library's time grows with the text. */
const MAX_VECTOR = 400;

/**
 * The score of a CVSS v3.0, v3.1 or v4.0 vector. Null for an invalid vector and for one that lacks a base metric.
 * v3 gives the base score; v4 has one score, which takes in threat and environment where the vector states them. OSV scores alike.
 */
export function scoreVector(vector: string): number | null {
  if (vector.length > MAX_VECTOR) return null;
  try {
    const score = calculate(vector);
    return typeof score === 'number' && score >= 0 && score <= 10 ? score : null;
  } catch {
    // Published records contain malformed vectors, and the library throws plain errors for some of them.
    return null;
  }
}

function calculate(vector: string): number | undefined {
  // The library accepts any version's text and fills in missing metrics, so both are checked here.
  if (vector.startsWith('CVSS:4.0/')) {
    const cvss = new Cvss4P0(vector);
    return cvss.isBaseFullyDefined() ? cvss.calculateScores().overall : undefined;
  }
  const V3 = { 'CVSS:3.1/': Cvss3P1, 'CVSS:3.0/': Cvss3P0 }[vector.slice(0, 9)];
  if (!V3) return undefined;
  const cvss = new V3(vector);
  return cvss.isBaseFullyDefined() ? cvss.calculateScores().base : undefined;
}

/** The rating that CVSS gives a score. */
export function labelOfScore(score: number): SeverityLabel {
  if (score === 0) return 'none';
  if (score < 4) return 'low';
  if (score < 7) return 'medium';
  return score < 9 ? 'high' : 'critical';
}
