import { secondsOf } from '../../lib/clock.ts';
import { type Flaw, mergeByAlias } from './aliases.ts';
import { labelOfScore, type SeverityLabel, scoreVector } from './cvss.ts';
import { affectedParts, affectedRanges, affectedVersions, fixesOf } from './osv-fixes.ts';
import type { OsvQuestion } from './osv-question.ts';
import type { AffectedRange } from './osv-ranges.ts';
import type { OsvRecord } from './osv-record.ts';

/** The severity of a vulnerability; each part is null when no record states it. */
export interface Severity {
  readonly label: SeverityLabel | null;
  readonly score: number | null;
  readonly vector: string | null;
}

/** One flaw of the asked package. */
export interface Advisory {
  readonly id: string;
  readonly aliases: string[];
  readonly summary: string | null;
  readonly severity: Severity;
  readonly fixedIn: string[];
  readonly affected: AffectedRange[];
  readonly affectedVersions: string[];
  /** A malicious package, by OpenSSF's list: the whole version is the attack. */
  readonly malicious: boolean;
  readonly publishedAt: number | null;
  readonly modifiedAt: number | null;
}

/** Bounds the answer. Some records list thousands of versions, and have ranges beside them. */
export const MAX_VERSIONS = 200;

/** OSV's records as one advisory for each vulnerability, newest first. Withdrawn records are left out before merging. */
export function readAdvisories(records: readonly OsvRecord[], asked: OsvQuestion): Advisory[] {
  const flaws = mergeByAlias(records.filter(({ withdrawn }) => !withdrawn));
  return flaws
    .map((flaw) => readAdvisory(flaw, asked))
    .sort((a, b) => (b.publishedAt ?? 0) - (a.publishedAt ?? 0) || (a.id < b.id ? -1 : 1));
}

function readAdvisory({ id, aliases, records }: Flaw<OsvRecord>, asked: OsvQuestion): Advisory {
  const published = records.map((record) => secondsOf(record.published)).filter((at) => at !== null);
  const modified = records.map((record) => secondsOf(record.modified)).filter((at) => at !== null);
  return {
    id,
    aliases,
    summary: records.find(({ summary }) => summary)?.summary ?? null,
    severity: severityOf(records, asked),
    fixedIn: fixesOf(records, asked),
    affected: affectedRanges(records, asked),
    affectedVersions: affectedVersions(records, asked).slice(0, MAX_VERSIONS),
    malicious: [id, ...aliases].some((name) => name.startsWith('MAL-')),
    publishedAt: published.length > 0 ? Math.min(...published) : null,
    modifiedAt: modified.length > 0 ? Math.max(...modified) : null,
  };
}

/** GitHub rates by v4 where a record has both. */
const VECTOR_TYPES = ['CVSS_V4', 'CVSS_V3'];

/**
 * The label is the publishing database's, else the score's. A record may disagree with its own vector, so both are reported.
 * The first record that states either is used; GitHub's record comes first.
 */
function severityOf(records: readonly OsvRecord[], asked: OsvQuestion): Severity {
  const scored = records.map((record) => vectorOf(record, asked)).find((found) => found !== null);
  const stated = records.map(({ database_specific }) => statedLabel(database_specific)).find((label) => label !== null);
  return {
    label: stated ?? (scored ? labelOfScore(scored.score) : null),
    score: scored?.score ?? null,
    vector: scored?.vector ?? null,
  };
}

/** A package's own vector takes precedence over the record's. A vector without a score is ignored. */
function vectorOf(record: OsvRecord, asked: OsvQuestion): { vector: string; score: number } | null {
  const given = [...affectedParts(record, asked).flatMap((part) => part.severity), ...record.severity];
  for (const type of VECTOR_TYPES) {
    for (const { score: vector } of given.filter((entry) => entry.type === type)) {
      const score = scoreVector(vector);
      if (score !== null) return { vector, score };
    }
  }
  return null;
}

/** GitHub's labels; its "moderate" is CVSS's "medium". */
const STATED: Record<string, SeverityLabel> = {
  LOW: 'low',
  MODERATE: 'medium',
  MEDIUM: 'medium',
  HIGH: 'high',
  CRITICAL: 'critical',
};

function statedLabel(databaseSpecific: unknown): SeverityLabel | null {
  if (typeof databaseSpecific !== 'object' || databaseSpecific === null || !('severity' in databaseSpecific))
    return null;
  return STATED[String(databaseSpecific.severity).toUpperCase()] ?? null;
}
