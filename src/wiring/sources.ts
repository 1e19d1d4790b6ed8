import type { ChainClient } from '../chain/rpc/client.ts';
import type { Config } from '../config.ts';
import type { PackageSources, Sources } from '../endpoints/sources.ts';
import type { Clock } from '../lib/clock.ts';
import { SERVICE_VERSION } from '../lib/service.ts';
import type { SelfTestReads } from '../store/ports/stores.ts';
import { createUpstreams, type UpstreamLog, type Upstreams } from '../upstream/client/client.ts';
import { firstToAnswer } from '../upstream/client/failure.ts';
import { createDns } from '../upstream/domains/dns.ts';
import { createRdap, createRdapBootstrap } from '../upstream/domains/rdap.ts';
import { createResolve, hostOf } from '../upstream/guard/guard.ts';
import { createDependents, createDepsDev } from '../upstream/packages/dependents.ts';
import { createNpm, createNpmDownloads } from '../upstream/packages/npm.ts';
import { registryTransport, registryUrl } from '../upstream/packages/npm-registry.ts';
import { createOsv } from '../upstream/packages/osv.ts';
import { createPypi, createPypiProvenance } from '../upstream/packages/pypi.ts';
import { createFindListing } from '../upstream/packages/registries.ts';
import { createEcb, createFrankfurter } from '../upstream/rates/ecb.ts';
import type { FixingSource } from '../upstream/rates/fixing.ts';
import { createPageReader } from '../upstream/web/page-reader.ts';
import { createWeb } from '../upstream/web/web.ts';
import { createWiki } from '../upstream/wikipedia.ts';
import type { Collecting } from './chain.ts';

// What endpoints read besides the chain: time-out, size, places and cache of each source of data, with their reasons.
// The time-outs of pages and of the Gateway are `WEB_TIMEOUT_MS` and `GATEWAY_TIMEOUT_MS`, the price of a bitcoin has
// its own in `upstream/rates/bitcoin.ts`.

interface SourcesParts {
  config: Config;
  chain: ChainClient;
  clock: Clock;
  collecting: Pick<Collecting, 'collector' | 'reads' | 'endpoints'>;
  selfTests: SelfTestReads;
  outgoing: ReturnType<typeof createOutgoing>;
}

export function openSources({ config, chain, clock, collecting, selfTests, outgoing }: SourcesParts): Sources {
  const { collector, reads, endpoints } = collecting;
  const { health, floorWei } = config.collected;
  return {
    chain,
    chainName: config.network,
    clock,
    collector,
    reads,
    collected: {
      endpoints,
      health,
      floorWei,
      watched: config.watch.tokens,
      hasDistributor: config.watch.distributor !== null,
    },
    explorerUrl: config.network.explorerUrl,
    usdc: config.network.usdc,
    projectToken: config.projectToken,
    usyc: config.markets.usyc,
    selfTests: { results: selfTests, enabled: config.selfTest.privateKey !== null, origin: config.publicOrigin },
    web: outgoing.web,
    packages: createPackageSources(outgoing.upstreams, config.packages),
    ...createNamesSources(outgoing.upstreams, config.names, clock),
  };
}

const KIB = 1024;
const MIB = 1024 * KIB;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

type NamesSources = Pick<Sources, 'dns' | 'rdap' | 'currency' | 'wiki'>;

/** Time-outs add up to less than `HANDLER_TIMEOUT_MS`, also with a second source, and for whois with its DNS. */
export function createNamesSources(upstreams: Upstreams, urls: Config['names'], clock: Clock): NamesSources {
  // A call asks for up to eight types at once. No cache: records are sold as live.
  const resolver = (name: string, url: string) => {
    const bounds = { timeoutMs: 3000, maxBytes: 256 * KIB, concurrency: 32, retries: 0 } as const;
    return { name, url, upstream: upstreams.open({ name, ...bounds }) };
  };
  const dns = createDns([resolver('Cloudflare 1.1.1.1', urls.dns), resolver('Google Public DNS', urls.dnsFallback)]);

  const bootstrap = upstreams.open({ name: 'IANA', timeoutMs: 3000, maxBytes: 1024 * KIB, concurrency: 1, retries: 0 });
  const registries = upstreams.open({
    // Registries block addresses after 10 to 100 questions a minute; the cache saves some.
    name: 'RDAP',
    timeoutMs: 5000,
    maxBytes: 512 * KIB,
    concurrency: 16,
    retries: 0,
    cache: { ttlMs: 10 * MINUTE_MS, staleIfErrorMs: 0, maxEntries: 2000 },
  });

  const files = upstreams.open({ name: 'ECB', timeoutMs: 4000, maxBytes: 8192 * KIB, concurrency: 3, retries: 1 });
  const frankfurter = upstreams.open({
    name: 'Frankfurter',
    timeoutMs: 3000,
    maxBytes: 256 * KIB,
    concurrency: 3,
    retries: 0,
    cache: { ttlMs: 10 * MINUTE_MS, staleIfErrorMs: 24 * HOUR_MS, maxEntries: 1000 },
  });
  const rates: FixingSource[] = [createEcb(files, urls.ecb, clock), createFrankfurter(frankfurter, urls.frankfurter)];
  const firstFixing = <T>(ask: (source: FixingSource) => Promise<T>) =>
    firstToAnswer(
      'reference rates',
      rates.map((source) => () => ask(source)),
    );

  const wikipedia = upstreams.open({
    // Three at a time and a cache: Wikimedia asks for it (https://www.mediawiki.org/wiki/API:Etiquette).
    name: 'Wikipedia',
    timeoutMs: 6000,
    maxBytes: 4096 * KIB,
    concurrency: 3,
    retries: 0,
    cache: { ttlMs: 10 * MINUTE_MS, staleIfErrorMs: 24 * HOUR_MS, maxEntries: 2000 },
  });

  return {
    dns,
    rdap: createRdap(registries, createRdapBootstrap(bootstrap, urls.rdapBootstrap, clock)),
    currency: {
      at: (date) => firstFixing((source) => source.at(date)),
      between: (from, to) => firstFixing((source) => source.between(from, to)),
    },
    wiki: createWiki(wikipedia, urls.wikipedia),
  };
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

/** `timeoutMs` replaces the time-out of each. */
export function createPackageSources(
  upstreams: Upstreams,
  config: Config['packages'],
  timeoutMs?: number,
): PackageSources {
  const within = (ownMs: number) => ({ ...shared, timeoutMs: timeoutMs ?? ownMs });
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
    npm: createNpm({ registry, registryUrl: npmUrl, publishedAt: createDepsDev(depsDev, config.depsDevUrl) }),
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

interface OutgoingOptions {
  readonly web: Config['web'];
  readonly publicOrigin: string;
  readonly clock: Clock;
  readonly log: UpstreamLog;
}

export function createOutgoing({ web: settings, publicOrigin, clock, log }: OutgoingOptions) {
  const userAgent = `percall/${SERVICE_VERSION} (+${settings.contactUrl ?? publicOrigin})`;
  const { testHosts, timeoutMs, hostPerMinute, pageWorkers } = settings;
  const dial = { resolve: createResolve(), ownHosts: new Set([hostOf(new URL(publicOrigin))]), testHosts };
  const upstreams = createUpstreams({ clock, userAgent, log, dial });
  const pages = createPageReader({ workers: pageWorkers });
  const web = createWeb({ clock, userAgent, measuredFrom: publicOrigin, timeoutMs, hostPerMinute, pages, dial });
  return {
    upstreams,
    web,
    dial,
    userAgent,
    close: async () => {
      await Promise.all([upstreams.close(), pages.close()]);
    },
  };
}
