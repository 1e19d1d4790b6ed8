import type { PackagesConfig } from '../../config/sources.ts';
import type { PackageSources } from '../../endpoints/sources.ts';
import type { Upstreams } from '../client/client.ts';
import { createDependents, createDepsDev } from './dependents.ts';
import { createNpm, createNpmDownloads } from './npm.ts';
import { registryTransport, registryUrl } from './npm-registry.ts';
import { createOsv } from './osv.ts';
import { createPypi, createPypiProvenance } from './pypi.ts';
import { createFindListing } from './registries.ts';

const MIB = 1024 * 1024;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** Far below every published limit of the sources. PyPI asks for few parallel requests. */
const shared = { concurrency: 3, retries: 1 as const };
const keep = (ttlMs: number, staleIfErrorMs = HOUR) => ({ cache: { ttlMs, staleIfErrorMs, maxEntries: 1000 } });

/**
 * For questions of existence, which anybody may cause before paying (see README.md): own places and an own cache beside those of sold answers, so that
 * they can neither delay a sold answer nor push it out of the cache. What they read is small, and a bigger document is not read.
 */
const existence = { concurrency: 2, maxBytes: MIB } as const;
const keepMany = (ttlMs: number) => ({ cache: { ttlMs, staleIfErrorMs: HOUR, maxEntries: 5000 } });

/** Opens the upstreams of the package endpoints. `timeoutMs` replaces the time-out of each. */
export function createPackageSources(upstreams: Upstreams, config: PackagesConfig, timeoutMs?: number): PackageSources {
  const within = (ownMs: number) => ({ ...shared, timeoutMs: timeoutMs ?? ownMs });
  const registry = upstreams.open({
    name: 'npm',
    ...within(5000),
    // Parsing takes about 7 ms a megabyte on the main thread. Larger packages are read by their manifest.
    maxBytes: 4 * MIB,
    // The registry's own Cache-Control.
    ...keep(5 * MINUTE),
    transport: registryTransport,
  });
  // An extra that must not delay the answer. npm counts it once a day.
  const downloads = upstreams.open({
    name: 'npm-downloads',
    ...within(2500),
    maxBytes: 64 * 1024,
    ...keep(6 * HOUR, 24 * HOUR),
  });
  // A published time does not change, but deps.dev learns of a version only after a while.
  const depsDev = upstreams.open({ name: 'deps.dev', ...within(3000), maxBytes: 4 * MIB, ...keep(HOUR) });
  // PyPI's own Cache-Control; the answer lists every file of every release.
  const pypi = upstreams.open({ name: 'pypi', ...within(5000), maxBytes: 16 * MIB, ...keep(15 * MINUTE) });
  // Most answers come within a second; those for packages with hundreds of advisories take longer, and several megabytes.
  const osv = upstreams.open({ name: 'osv', ...within(8000), maxBytes: 16 * MIB, ...keep(10 * MINUTE) });
  const nuget = upstreams.open({ name: 'nuget', ...within(5000), maxBytes: MIB, ...keep(15 * MINUTE) });
  // The answer lists every release of a package.
  const packagist = upstreams.open({ name: 'packagist', ...within(5000), maxBytes: 4 * MIB, ...keep(15 * MINUTE) });
  const npmUrl = () => registryUrl(config.npmUrl);
  const lookup = (name: string, ttlMs: number) => ({ name, ...within(5000), ...existence, ...keepMany(ttlMs) });
  const npmLookup = upstreams.open({ ...lookup('npm', 5 * MINUTE), transport: registryTransport });
  const pypiLookup = upstreams.open(lookup('pypi', 15 * MINUTE));
  // Its answer about a whole package lists every version.
  const depsDevLookup = upstreams.open({ ...lookup('deps.dev', HOUR), ...within(3000), maxBytes: 4 * MIB });
  return {
    npm: createNpm({
      registry,
      registryUrl: npmUrl,
      publishedAt: createDepsDev(depsDev, config.depsDevUrl),
    }),
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
