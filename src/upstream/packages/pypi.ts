import { z } from 'zod';
import { UpstreamFailed } from '../../errors.ts';
import { secondsOf } from '../../lib/clock.ts';
import type { Upstream } from '../client/http.ts';
import { type Flaw, mergeByAlias } from './aliases.ts';
import { pythonLicence } from './licence.ts';
import { normalisePypiName } from './package-names.ts';
import { parseRequirement, type Requirement } from './pep508.ts';
import { type ProjectUrl, projectUrls } from './project-urls.ts';
import { fileSchema, type PypiFiles, readFiles } from './pypi-files.ts';
import { comparePython, sortVersions } from './versions.ts';

/** One vulnerability of the release. */
export interface PypiAdvisory {
  readonly id: string;
  readonly aliases: string[];
  readonly summary: string | null;
  /** Ascending by PEP 440; empty: no fixed version is known. */
  readonly fixedIn: string[];
}

/** The release that PyPI calls the project's latest. */
export interface PypiRelease extends PypiFiles {
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
  readonly projectUrls: readonly ProjectUrl[];
  readonly url: string;
  readonly retrievedAtMs: number;
}

export interface Pypi {
  /** null where PyPI has no such project. `name` in any spelling. */
  latest(name: string, signal?: AbortSignal): Promise<PypiRelease | null>;
}

const text = z.string().nullish();

const vulnerability = z.object({
  id: z.string(),
  aliases: z.array(z.string()).default([]),
  summary: text,
  fixed_in: z.array(z.string()).default([]),
  withdrawn: text,
});

/** https://docs.pypi.org/api/json/; `vulnerabilities` is required, because without it "none known" would be unfounded. */
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

/** PyPI's JSON API. */
export function createPypi(upstream: Upstream, baseUrl: string): Pypi {
  return {
    async latest(name, signal) {
      const url = `${baseUrl}/pypi/${encodeURIComponent(normalisePypiName(name) ?? name)}/json`;
      const got = await upstream.jsonDated({ url, ...(signal && { signal }) }, projectSchema);
      if (!got) return null;
      if (normalisePypiName(got.data.info.name) !== normalisePypiName(name)) {
        throw new UpstreamFailed(upstream.name, 'answered for another project');
      }
      return { ...readRelease(got.data), url: got.url, retrievedAtMs: got.retrievedAtMs };
    },
  };
}

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
