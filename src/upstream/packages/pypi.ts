import { z } from 'zod';
import { UpstreamFailed } from '../../errors.ts';
import { secondsOf } from '../../lib/clock.ts';
import { plainText } from '../../lib/untrusted.ts';
import type { Retrieved, Upstream } from '../client/client.ts';
import { comparePython, normalisePypiName, sortVersions } from './ecosystems.ts';
import { type Flaw, mergeByAlias } from './osv.ts';
import { type ProjectUrl, projectUrls, pythonLicence } from './project.ts';

export interface Pypi {
  /** Null where PyPI has no such project. `name` in any spelling. */
  latest(name: string, signal?: AbortSignal): Promise<PypiRelease | null>;
}

interface PypiRelease extends PypiFiles, Retrieved {
  readonly name: string;
  readonly version: string;
  readonly publishedAt: number | null;
  readonly requiresPython: string | null;
  readonly licence: string | null;
  /** Null when the metadata names none. PyPI does not distinguish none from unknown. */
  readonly dependencies: Requirement[] | null;
  readonly yanked: boolean;
  readonly advisories: PypiAdvisory[];
  readonly summary: string | null;
  readonly homepage: string | null;
  readonly projectUrls: ProjectUrl[];
}

interface PypiFiles {
  /** The source distribution first; at most MAX_FILES. */
  readonly files: PypiFile[];
  readonly fileCount: number;
  readonly totalSizeBytes: number;
}

interface PypiFile {
  readonly filename: string;
  /** `sdist`, `bdist_wheel` or an older kind. */
  readonly kind: string;
  readonly sizeBytes: number;
  readonly sha256: string | null;
}

export interface PypiAdvisory {
  readonly id: string;
  readonly aliases: string[];
  readonly summary: string | null;
  /** Ascending by PEP 440; empty: no fixed version is known. */
  readonly fixedIn: string[];
}

interface Requirement {
  readonly name: string;
  /** Of the dependency: `requests[socks]`. */
  readonly extras: string[];
  /** For example `>=1.21.1,<3`; null: any version. */
  readonly specifier: string | null;
  /** The extra of this package that requires it; null for none, or when the marker is too complex to evaluate. */
  readonly extra: string | null;
  /** Beside the extra, as written. */
  readonly marker: string | null;
}

/** The latest release of a project, by PyPI's JSON API: its facts, advisories, files and dependencies. */
export function createPypi(upstream: Upstream, baseUrl: string): Pypi {
  return {
    async latest(name, signal) {
      const url = `${baseUrl}/pypi/${encodeURIComponent(normalisePypiName(name) ?? name)}/json`;
      const got = await upstream.jsonDated({ url, signal }, projectSchema);
      if (!got) return null;
      if (normalisePypiName(got.data.info.name) !== normalisePypiName(name)) {
        throw new UpstreamFailed(upstream.name, 'answered for another project');
      }
      return { ...readRelease(got.data), url: got.url, retrievedAtMs: got.retrievedAtMs };
    },
  };
}

const text = z.string().nullish();

const vulnerability = z.object({
  id: z.string(),
  aliases: z.array(z.string()).default([]),
  summary: text,
  fixed_in: z.array(z.string()).default([]),
  withdrawn: text,
});

/** An odd member of an entry of `urls` is left out, because the release itself is still worth an answer. */
export const fileSchema = z.object({
  upload_time_iso_8601: z.string().nullish(),
  filename: z.string().nullish().catch(null),
  packagetype: z.string().nullish().catch(null),
  size: z.int().nonnegative().nullish().catch(null),
  digests: z
    .object({ sha256: z.string().regex(/^[0-9a-f]{64}$/) })
    .nullish()
    .catch(null),
});

/** https://docs.pypi.org/api/json/; `vulnerabilities` is required: without it "none known" would be unfounded. */
const projectSchema = z.object({
  info: z.object({
    name: z.string(),
    version: z.string(),
    summary: text,
    license: text,
    license_expression: text,
    classifiers: z.array(z.string()).nullish(),
    requires_dist: z.array(z.string()).nullish(),
    requires_python: text,
    home_page: text,
    project_urls: z.record(z.string(), z.string()).nullish(),
    yanked: z.boolean().default(false),
  }),
  urls: z.array(fileSchema),
  vulnerabilities: z.array(vulnerability),
});

function readRelease({ info, urls, vulnerabilities }: z.output<typeof projectSchema>) {
  const uploads = urls.map((file) => secondsOf(file.upload_time_iso_8601)).filter((at) => at !== null);
  const known = vulnerabilities.filter(({ withdrawn }) => !withdrawn);
  return {
    name: info.name,
    version: info.version,
    // A release's files are uploaded one after the other. The first upload publishes it.
    publishedAt: uploads.length > 0 ? Math.min(...uploads) : null,
    requiresPython: info.requires_python || null,
    licence: pythonLicence(info),
    dependencies: info.requires_dist?.map(parseRequirement).filter((requirement) => requirement !== null) ?? null,
    yanked: info.yanked,
    advisories: mergeByAlias(known).map(readAdvisory),
    summary: stated(info.summary),
    homepage: stated(info.home_page) ?? homepageOf(info.project_urls ?? {}),
    projectUrls: projectUrls([['Homepage', info.home_page], ...Object.entries(info.project_urls ?? {})]),
    ...readFiles(urls),
  };
}

function readAdvisory(flaw: Flaw<z.output<typeof vulnerability>>): PypiAdvisory {
  const fixes = flaw.records.flatMap(({ fixed_in }) => fixed_in);
  return {
    id: flaw.id,
    aliases: flaw.aliases,
    summary: flaw.records.map(({ summary }) => stated(summary)).find((summary) => summary !== null) ?? null,
    fixedIn: sortVersions(fixes, comparePython),
  };
}

/** Old tools wrote UNKNOWN for a missing value. */
function stated(value: string | null | undefined): string | null {
  const trimmed = value?.trim() ?? '';
  return trimmed === '' || trimmed.toUpperCase() === 'UNKNOWN' ? null : trimmed;
}

/** Labels are free text; PyPI itself compares them without case and punctuation. */
function homepageOf(urls: Record<string, string>): string | null {
  const found = Object.entries(urls).find(([label]) => label.toLowerCase().replace(/[\W_]/g, '') === 'homepage');
  return stated(found?.[1]);
}

/** Releases with binaries for many platforms have some hundred files. */
export const MAX_FILES = 20;
const MAX_TEXT = 200;

export function readFiles(urls: readonly z.output<typeof fileSchema>[]): PypiFiles {
  const files = urls.flatMap(({ filename, packagetype, size, digests }) => {
    if (filename == null || size == null) return [];
    const kind = plainText(packagetype, MAX_TEXT) || 'unknown';
    return { filename: plainText(filename, MAX_TEXT), kind, sizeBytes: size, sha256: digests?.sha256 ?? null };
  });
  const sourceFirst = files.sort((a, b) => Number(b.kind === 'sdist') - Number(a.kind === 'sdist'));
  return {
    files: sourceFirst.slice(0, MAX_FILES),
    fileCount: urls.length,
    totalSizeBytes: files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
  };
}

const NAME = /^([A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)\s*(?:\[([^\]]*)\])?/;

/** A `Requires-Dist` line in today's or the old spelling, else null. Takes linear time: any account can upload one. */
export function parseRequirement(line: string): Requirement | null {
  const text = line.trim();
  const named = NAME.exec(text);
  if (!named?.[1]) return null;
  const { head, marker } = splitMarker(text.slice(named[0].length));
  const extras = (named[2] ?? '').split(',').map((part) => part.trim());
  return {
    name: named[1],
    extras: extras.filter((part) => part !== ''),
    specifier: tidySpecifier(head),
    ...readMarker(marker),
  };
}

/** A URL may hold semicolons, so after `@` the marker begins only at one with a space before it (PEP 508). */
function splitMarker(rest: string): { head: string; marker: string } {
  const at = rest.trimStart().startsWith('@') ? rest.search(/\s;/) : rest.indexOf(';');
  if (at < 0) return { head: rest, marker: '' };
  return { head: rest.slice(0, at), marker: rest.slice(at).replace(/^\s?;/, '') };
}

function tidySpecifier(head: string): string | null {
  const text = head.trim();
  const bare = text.startsWith('(') && text.endsWith(')') ? text.slice(1, -1) : text;
  if (bare.trimStart().startsWith('@')) return bare.trim();
  return bare.replace(/\s+/g, '') || null;
}

/** Takes `extra == "x"` out when the whole condition depends on it: not under an `or` or `not` at the top level. */
function readMarker(text: string): { extra: string | null; marker: string | null } {
  const marker = text.trim();
  const parts = splitAtAnd(marker);
  const extras = (parts ?? []).map(extraOf);
  const [extra, ...others] = extras.filter((name) => name !== null);
  if (!parts || extra === undefined || others.length > 0) return { extra: null, marker: marker || null };
  const rest = parts.filter((_, at) => extras[at] === null);
  const [only] = rest;
  return { extra, marker: (rest.length === 1 && only ? unwrap(only) : rest.join(' and ')) || null };
}

/** The parts of a top-level conjunction. Null when the top level has an `or`, or when brackets do not match. */
function splitAtAnd(marker: string): string[] | null {
  const parts: string[] = [];
  let depth = 0;
  let from = 0;
  for (const token of marker.matchAll(/"[^"]*"|'[^']*'|[()]|\b(?:and|or)\b/g)) {
    if (token[0] === '(') depth += 1;
    else if (token[0] === ')') depth -= 1;
    else if (depth === 0 && token[0] === 'or') return null;
    else if (depth === 0 && token[0] === 'and') {
      parts.push(marker.slice(from, token.index).trim());
      from = token.index + token[0].length;
    }
    if (depth < 0) return null;
  }
  return depth === 0 ? [...parts, marker.slice(from).trim()] : null;
}

function extraOf(part: string): string | null {
  const match =
    /^extra\s*==\s*(["'])([^"']+)\1$/.exec(unwrap(part)) ?? /^(["'])([^"']+)\1\s*==\s*extra$/.exec(unwrap(part));
  return match?.[2] ?? null;
}

function unwrap(part: string): string {
  if (!part.startsWith('(') || !part.endsWith(')')) return part;
  let depth = 0;
  for (const token of part.matchAll(/"[^"]*"|'[^']*'|[()]/g)) {
    if (token[0] === '(') depth += 1;
    else if (token[0] === ')') depth -= 1;
    if (depth === 0 && token.index < part.length - 1) return part;
  }
  return part.slice(1, -1).trim();
}

/** Null: PyPI has no attestation of the file. Rejects with UpstreamFailed when it does not answer. */
export type FindPypiProvenance = (
  name: string,
  version: string,
  filename: string,
  signal?: AbortSignal,
) => Promise<PypiProvenance | null>;

interface PypiProvenance {
  readonly filename: string;
  readonly publishers: {
    readonly kind: string;
    readonly repository: string | null;
    readonly workflow: string | null;
  }[];
  readonly url: string;
}

/** A document holds one bundle, of some ten kilobytes. */
const MAX_BYTES = 256 * 1024;
const MAX_PUBLISHERS = 5;

// A Google publisher is named by an e-mail address, which is not read.
const publisher = z.object({ kind: z.string(), repository: text, workflow: text, workflow_filepath: text });
const provenanceSchema = z.object({ attestation_bundles: z.array(z.object({ publisher })).min(1) });

/** PyPI's Integrity API (https://docs.pypi.org/api/integrity/): one small document a file. */
export function createPypiProvenance(upstream: Upstream, baseUrl: string): FindPypiProvenance {
  const plain = (value: unknown) => plainText(value, MAX_TEXT) || null;
  return async (name, version, filename, signal) => {
    const path = [name, version, filename].map(encodeURIComponent).join('/');
    const url = `${baseUrl}/integrity/${path}/provenance`;
    const accept = 'application/vnd.pypi.integrity.v1+json';
    const got = await upstream.jsonDated({ url, accept, maxBytes: MAX_BYTES, signal }, provenanceSchema);
    if (got === null) return null;
    const publishers = got.data.attestation_bundles.slice(0, MAX_PUBLISHERS).map(({ publisher: one }) => ({
      kind: plainText(one.kind, MAX_TEXT),
      repository: plain(one.repository),
      workflow: plain(one.workflow ?? one.workflow_filepath),
    }));
    return { filename, publishers, url: got.url };
  };
}
