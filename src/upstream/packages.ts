import { z } from 'zod';
import { secondsOf } from '../lib/clock.ts';
import { type Dated, HOUR_MS, MIB, MINUTE_MS, type Opening, type Upstream } from './client/client.ts';
import { createNpm, createNpmDownloads, type Npm } from './packages/npm.ts';
import { registryTransport, registryUrl } from './packages/npm-registry.ts';
import { createOsv, type Osv } from './packages/osv.ts';
import { createPypi, createPypiProvenance, type FindPypiProvenance, type Pypi } from './packages/pypi.ts';
import { createFindListing, type FindListing } from './packages/registries.ts';

// Every source of package data with its limits; deps.dev's counts and dates.

export interface PackageSources {
  readonly npm: Npm;
  /** Downloads over the last seven counted days; null when npm counts none. */
  readonly npmDownloads: (name: string, signal?: AbortSignal) => Promise<number | null>;
  readonly pypi: Pypi;
  readonly pypiProvenance: FindPypiProvenance;
  readonly dependents: ReturnType<typeof createDependents>;
  readonly osv: Osv;
  readonly findListing: FindListing;
}

/** Far below every published limit of the sources. PyPI asks for few parallel requests. */
const shared = { concurrency: 3, retries: 1 as const };
const keep = (ttlMs: number, staleIfErrorMs = HOUR_MS) => ({ cache: { ttlMs, staleIfErrorMs, maxEntries: 1000 } });

/**
 * Anybody may ask whether something exists before paying (upstream/README.md): places and a cache of their own, so that
 * such questions neither delay a sold answer nor push it out of the cache.
 */
const existence = { concurrency: 2, maxBytes: MIB } as const;
const keepMany = (ttlMs: number) => ({ cache: { ttlMs, staleIfErrorMs: HOUR_MS, maxEntries: 5000 } });

export function createPackageSources({ upstreams, config: { packages: config } }: Opening<'packages'>): PackageSources {
  const within = (timeoutMs: number) => ({ ...shared, timeoutMs });
  const registry = upstreams.open({
    name: 'npm',
    ...within(5000),
    // Parsing takes about 7 ms a megabyte on the main thread. Larger packages are read by their manifest.
    maxBytes: 4 * MIB,
    // The registry's own Cache-Control.
    ...keep(5 * MINUTE_MS),
    transport: registryTransport,
  });
  // An extra that must not delay the answer. npm counts it once a day.
  const downloads = upstreams.open({
    name: 'npm-downloads',
    ...within(2500),
    maxBytes: 64 * 1024,
    ...keep(6 * HOUR_MS, 24 * HOUR_MS),
  });
  // A published time does not change, but deps.dev learns of a version only after a while.
  const depsDev = upstreams.open({ name: 'deps.dev', ...within(3000), maxBytes: 4 * MIB, ...keep(HOUR_MS) });
  // PyPI's own Cache-Control; the answer lists every file of every release.
  const pypi = upstreams.open({ name: 'pypi', ...within(5000), maxBytes: 16 * MIB, ...keep(15 * MINUTE_MS) });
  // Most answers take a second; those with hundreds of advisories take longer, and several megabytes.
  const osv = upstreams.open({ name: 'osv', ...within(8000), maxBytes: 16 * MIB, ...keep(10 * MINUTE_MS) });
  const nuget = upstreams.open({ name: 'nuget', ...within(5000), maxBytes: MIB, ...keep(15 * MINUTE_MS) });
  // The answer lists every release of a package.
  const packagist = upstreams.open({ name: 'packagist', ...within(5000), maxBytes: 4 * MIB, ...keep(15 * MINUTE_MS) });
  const npmUrl = () => registryUrl(config.npmUrl);
  const lookup = (name: string, ttlMs: number) => ({ name, ...within(5000), ...existence, ...keepMany(ttlMs) });
  const npmLookup = upstreams.open({ ...lookup('npm', 5 * MINUTE_MS), transport: registryTransport });
  const pypiLookup = upstreams.open(lookup('pypi', 15 * MINUTE_MS));
  // Its answer about a whole package lists every version.
  const depsDevLookup = upstreams.open({ ...lookup('deps.dev', HOUR_MS), ...within(3000), maxBytes: 4 * MIB });
  return {
    npm: createNpm(registry, npmUrl, createDepsDev(depsDev, config.depsDevUrl)),
    npmDownloads: createNpmDownloads(downloads, config.npmDownloadsUrl),
    pypi: createPypi(pypi, config.pypiUrl),
    pypiProvenance: createPypiProvenance(pypi, config.pypiUrl),
    dependents: createDependents(depsDev, config.depsDevUrl),
    osv: createOsv(osv, config.osvUrl),
    findListing: createFindListing({
      ...config,
      npm: npmLookup,
      npmUrl,
      pypi: pypiLookup,
      depsDev: depsDevLookup,
      nuget,
      packagist,
    }),
  };
}

const count = z.int().nonnegative();
const countsSchema = z
  .object({ dependentCount: count, directDependentCount: count, indirectDependentCount: count })
  .transform(({ dependentCount: total, directDependentCount: direct, indirectDependentCount: indirect }) => {
    return { direct, indirect, total };
  });

/** How many public packages depend on one version, by deps.dev's count. */
export type Dependents = Dated<z.output<typeof countsSchema>>;

/** In deps.dev's alpha API alone (https://docs.deps.dev/api/v3alpha/#getdependents). 404 may mean no dependents. */
function createDependents(upstream: Upstream, baseUrl: string) {
  /** Null: deps.dev knows none, or does not know the version yet. Rejects with UpstreamFailed without an answer. */
  return async (system: 'npm' | 'pypi', name: string, version: string, signal?: AbortSignal) => {
    const exact = `${encodeURIComponent(name)}/versions/${encodeURIComponent(version)}`;
    const url = `${baseUrl}/v3alpha/systems/${system}/packages/${exact}:dependents`;
    return upstream.jsonDated({ url, signal }, countsSchema);
  };
}

const versionSchema = z.object({ publishedAt: z.string().optional() });

/** When an npm version was published; null when deps.dev fails or does not know. It lags: the second choice. */
function createDepsDev(upstream: Upstream, baseUrl: string) {
  return async (name: string, version: string, signal?: AbortSignal): Promise<number | null> => {
    const path = `v3/systems/npm/packages/${encodeURIComponent(name)}/versions/${encodeURIComponent(version)}`;
    const found = await upstream.json({ url: `${baseUrl}/${path}`, signal }, versionSchema).catch(() => null);
    return secondsOf(found?.publishedAt);
  };
}
