import cvss from 'ae-cvss-calculator';
import { z } from 'zod';
import { UpstreamFailed } from '../../errors.ts';
import { secondsOf } from '../../lib/clock.ts';
import type { Retrieved, Upstream } from '../client/client.ts';
import { type CompareVersions, ECOSYSTEMS, type EcosystemName, sortVersions } from './ecosystems.ts';

/** A package, with one version or all. Name and version are in the normalised form of `ECOSYSTEMS`. */
export interface OsvQuestion {
  readonly ecosystem: EcosystemName;
  readonly name: string;
  readonly version: string | null;
}

export interface Osv {
  /** Each vulnerability once, newest first. Empty also when OSV does not know the package. */
  advisories(question: OsvQuestion, signal?: AbortSignal): Promise<OsvAnswer>;
}

export interface OsvAnswer extends Retrieved {
  readonly advisories: Advisory[];
  /** Whether an advisory names the package, and lists the asked version. It proves that they exist or once did. */
  readonly isNamed: boolean;
}

interface Advisory {
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

/** Each part is null when no record states it. */
interface Severity {
  readonly label: SeverityLabel | null;
  readonly score: number | null;
  readonly vector: string | null;
}

/** From `introduced` (null: the first version) up to `fixed` (exclusive; null: none) or `lastAffected` (inclusive). */
interface AffectedRange {
  readonly introduced: string | null;
  readonly fixed: string | null;
  readonly lastAffected: string | null;
}

/** OSV ends a page after 1000 records or 20 s (https://google.github.io/osv.dev/post-v1-query/). None has 1000. */
const MAX_PAGES = 10;

/** By OSV.dev's query API. All pages are read, or the call fails: a part of the advisories would look complete. */
export function createOsv(upstream: Upstream, baseUrl: string): Osv {
  async function readPages(query: Record<string, unknown>, signal?: AbortSignal) {
    const records: OsvRecord[] = [];
    let token: string | undefined;
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const body = JSON.stringify({ ...query, ...(token && { page_token: token }) });
      const headers = { 'content-type': 'application/json' };
      const request = { url: `${baseUrl}/v1/query`, method: 'POST' as const, headers, body, signal };
      const page = await upstream.jsonDated(request, pageSchema);
      // OSV uses 404 for single records only. A query without a result gives an empty object.
      if (!page) throw new UpstreamFailed(upstream.name, 'answered HTTP 404');
      records.push(...page.data.vulns);
      token = page.data.next_page_token || undefined;
      if (token === undefined) return { records, url: page.url, retrievedAtMs: page.retrievedAtMs };
    }
    throw new UpstreamFailed(upstream.name, `answered more than ${MAX_PAGES} pages`);
  }

  return {
    async advisories(question, signal) {
      const { ecosystem, name, version } = question;
      const asked = { name, ecosystem: ECOSYSTEMS[ecosystem].osv };
      const { records, ...read } = await readPages({ package: asked, ...(version !== null && { version }) }, signal);
      const advisories = readAdvisories(records, question);
      const isNamed = advisories.some((one) => version === null || one.affectedVersions.length > 0);
      return { advisories, isNamed, ...read };
    },
  };
}

const event = z.object({
  introduced: z.string().optional(),
  fixed: z.string().optional(),
  last_affected: z.string().optional(),
});
const severity = z.object({ type: z.string(), score: z.string() });
const affected = z.object({
  package: z.object({ ecosystem: z.string(), name: z.string() }).optional(),
  ranges: z.array(z.object({ type: z.string(), events: z.array(event) })).default([]),
  // A list that cannot be read is no list: the ranges beside it say more.
  versions: z.array(z.string()).catch([]),
  severity: z.array(severity).default([]),
});
/** https://ossf.github.io/osv-schema/, 1.7.5. Times are parsed later, so that an odd record hides no others. */
export const recordSchema = z.object({
  id: z.string(),
  aliases: z.array(z.string()).default([]),
  summary: z.string().optional(),
  published: z.unknown().optional(),
  modified: z.unknown().optional(),
  withdrawn: z.string().optional(),
  severity: z.array(severity).default([]),
  affected: z.array(affected).default([]),
  database_specific: z.unknown().optional(),
});
type OsvRecord = z.output<typeof recordSchema>;
type OsvEvent = z.output<typeof event>;

const pageSchema = z
  .looseObject({ vulns: z.array(recordSchema).default([]), next_page_token: z.string().optional() })
  // An empty object means that nothing is known. Any other answer without the expected fields must not count as that.
  .refine(
    (page) => page.vulns.length > 0 || page.next_page_token !== undefined || isEmpty(page),
    'neither a page nor empty',
  );

function isEmpty(page: Record<string, unknown>): boolean {
  return Object.keys(page).every((key) => key === 'vulns');
}

/** Listed versions of an advisory. Some records list thousands, and have ranges beside them. */
export const MAX_VERSIONS = 200;

export function readAdvisories(records: readonly OsvRecord[], asked: OsvQuestion): Advisory[] {
  const flaws = mergeByAlias(records.filter(({ withdrawn }) => !withdrawn));
  return flaws
    .map((flaw) => readAdvisory(flaw, asked))
    .sort((a, b) => (b.publishedAt ?? 0) - (a.publishedAt ?? 0) || (a.id < b.id ? -1 : 1));
}

/** One vulnerability under all its names, sorted. */
export interface Flaw<T> {
  /** The name that most buyers know: GitHub's, else the CVE number, else the first record's own. */
  readonly id: string;
  readonly aliases: string[];
  /** Its records, the one called `id` first. */
  readonly records: readonly T[];
}

/** Merges records that share a name, also through others (https://ossf.github.io/osv-schema/#aliases-field). */
export function mergeByAlias<T extends Pick<Advisory, 'id' | 'aliases'>>(records: readonly T[]): Flaw<T>[] {
  const groups = new Map<string, Set<T>>();
  for (const record of records) {
    const names = [record.id, ...record.aliases];
    const joined = new Set<T>();
    for (const name of names) for (const other of groups.get(name) ?? []) joined.add(other);
    joined.add(record);
    for (const member of joined) for (const name of [member.id, ...member.aliases]) groups.set(name, joined);
  }
  return [...new Set(groups.values())].map((group) => asFlaw([...group]));
}

function asFlaw<T extends Pick<Advisory, 'id' | 'aliases'>>(group: readonly T[]): Flaw<T> {
  const records = [...group].sort((a, b) => rank(a.id) - rank(b.id));
  const id = records[0]?.id ?? '';
  const names = new Set(records.flatMap((record) => [record.id, ...record.aliases]));
  names.delete(id);
  return { id, aliases: [...names].sort(), records };
}

function rank(id: string): number {
  if (id.startsWith('GHSA-')) return 0;
  return id.startsWith('CVE-') ? 1 : 2;
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

/** The label is the publishing database's, else the score's. A record may contradict its own vector: both are shown. */
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

/** CVSS's qualitative ratings (v3.1 section 5, v4.0 section 6), in lower case. */
export const SEVERITY_LABELS = ['none', 'low', 'medium', 'high', 'critical'] as const;
type SeverityLabel = (typeof SEVERITY_LABELS)[number];

export function labelOfScore(score: number): SeverityLabel {
  if (score === 0) return 'none';
  if (score < 4) return 'low';
  if (score < 7) return 'medium';
  return score < 9 ? 'high' : 'critical';
}

// Node cannot detect this CommonJS bundle's named exports, so they are read from the default export.
const { Cvss3P0, Cvss3P1, Cvss4P0 } = cvss;

/** Longer than any valid vector. The library's time grows with the text. */
const MAX_VECTOR = 400;

/** Of a CVSS v3 or v4.0 vector; null when it is invalid or incomplete. v4 counts threat and environment, as at OSV. */
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

/** The versions that fix it, ascending. For a given version: the fix of its own release line, else those above it. */
export function fixesOf(records: readonly OsvRecord[], asked: OsvQuestion): string[] {
  const { compare } = ECOSYSTEMS[asked.ecosystem];
  const ranges = versionEvents(records, asked);
  const all = sortVersions(
    ranges.flat().flatMap(({ fixed }) => fixed ?? []),
    compare,
  );
  const { version } = asked;
  if (version === null) return all;
  const own = ranges.flatMap((events) => fixOnLine(events, version, compare) ?? []);
  if (own.length > 0) return sortVersions(own, compare);
  return all.filter((fix) => (compare(fix, version) ?? 1) > 0);
}

/** The fix that ends the range with this version; null for no range or fix, or an unknown order. */
function fixOnLine(events: readonly OsvEvent[], version: string, compare: CompareVersions): string | null {
  const sides = rangesOf(events, compare).map((range) => ({ range, held: holds(range, version, compare) }));
  if (sides.some(({ held }) => held === null)) return null;
  return sides.find(({ held }) => held)?.range.fixed ?? null;
}

/** Each once, ascending where comparable. For a given version: those that hold it, or may for an unknown order. */
export function affectedRanges(records: readonly OsvRecord[], asked: OsvQuestion): AffectedRange[] {
  const { compare } = ECOSYSTEMS[asked.ecosystem];
  const { version } = asked;
  const ranges = versionEvents(records, asked).flatMap((events) => rangesOf(events, compare));
  const unique = new Map(ranges.map((range) => [JSON.stringify(range), range]));
  const start = (range: AffectedRange) => range.introduced ?? '0';
  return [...unique.values()]
    .filter((range) => version === null || holds(range, version, compare) !== false)
    .sort((a, b) => orderOf(compare)(start(a), start(b)) ?? 0);
}

/** Those that the records list one by one; of a given version that one, if it is listed. */
export function affectedVersions(records: readonly OsvRecord[], asked: OsvQuestion): string[] {
  const { compare } = ECOSYSTEMS[asked.ecosystem];
  const { version } = asked;
  const listed = records.flatMap((record) => affectedParts(record, asked)).flatMap(({ versions }) => versions);
  const isAsked = (one: string) => version === null || one === version || compare(one, version) === 0;
  return [...new Set(listed.filter(isAsked))];
}

function affectedParts(record: OsvRecord, { ecosystem, name }: OsvQuestion) {
  const rules = ECOSYSTEMS[ecosystem];
  return record.affected.filter((part) => {
    // A suffix after a colon names a variant of the ecosystem, such as another repository.
    if (part.package?.ecosystem.split(':')[0] !== rules.osv) return false;
    return (rules.name(part.package.name) ?? part.package.name) === name;
  });
}

/** Ranges of commits (GIT) are left out. */
function versionEvents(records: readonly OsvRecord[], asked: OsvQuestion): OsvEvent[][] {
  return records
    .flatMap((record) => affectedParts(record, asked))
    .flatMap((part) => part.ranges)
    .filter((range) => range.type !== 'GIT')
    .map((range) => range.events);
}

/** OSV's name for the very first version, before any such as 0.0.0-alpha. */
const FIRST = '0';

/** Ascending where the versions can be compared, else in the given order. */
function rangesOf(events: readonly OsvEvent[], compare: CompareVersions): AffectedRange[] {
  const order = orderOf(compare);
  const marks = events.map((event) => ({ event, at: event.fixed ?? event.last_affected ?? event.introduced ?? FIRST }));
  if (marks.every(({ at }) => order(at, at) === 0)) marks.sort((a, b) => order(a.at, b.at) ?? 0);
  const ranges: AffectedRange[] = [];
  let open: string | null = null;
  for (const { event } of marks) {
    if (event.introduced !== undefined) open ??= event.introduced;
    if (open === null || (event.fixed === undefined && event.last_affected === undefined)) continue;
    ranges.push({ introduced: shown(open), fixed: event.fixed ?? null, lastAffected: event.last_affected ?? null });
    open = null;
  }
  if (open !== null) ranges.push({ introduced: shown(open), fixed: null, lastAffected: null });
  return ranges;
}

/** Null when the order is unknown. */
function holds(range: AffectedRange, version: string, compare: CompareVersions): boolean | null {
  const order = orderOf(compare);
  const sides = [order(range.introduced ?? FIRST, version), to(range.fixed), to(range.lastAffected)];
  function to(end: string | null): number | null {
    return end === null ? 1 : order(end, version);
  }
  const [begin = null, fixed = null, last = null] = sides;
  if (begin === null || fixed === null || last === null) return null;
  return begin <= 0 && fixed > 0 && last >= 0;
}

function shown(introduced: string): string | null {
  return introduced === FIRST ? null : introduced;
}

/** FIRST comes before all others; the rest follow the ecosystem's rules. */
function orderOf(compare: CompareVersions): CompareVersions {
  return (a, b) => (a === FIRST ? -Number(b !== FIRST) : b === FIRST ? 1 : compare(a, b));
}
