import type { NamesConfig } from '../../config/sources.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Upstreams } from '../client/client.ts';
import { firstToAnswer } from '../client/failure.ts';
import { createDns, type Dns } from '../domains/dns.ts';
import { createRdap, createRdapBootstrap, type Rdap } from '../domains/rdap.ts';
import { createEcb, createFrankfurter } from '../rates/ecb.ts';
import type { FixingSource } from '../rates/fixing.ts';
import { createWiki, type Wiki } from '../wikipedia.ts';

/** The sources of domains, currencies and encyclopedias. */
export interface NamesSources {
  readonly dns: Dns;
  readonly rdap: Rdap;
  readonly currency: FixingSource;
  readonly wiki: Wiki;
}

const KIB = 1024;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/**
 * Creates the sources. Their time-outs add up to less than an endpoint's 15 seconds, also for a call that needs its second source and for whois,
 * which may ask the DNS too.
 */
export function createNamesSources(upstreams: Upstreams, urls: NamesConfig, clock: Clock): NamesSources {
  // A call asks for up to eight types at once. Answers are not cached, because records are sold as live.
  const resolver = (name: string, url: string) => {
    const bounds = { timeoutMs: 3000, maxBytes: 256 * KIB, concurrency: 32, retries: 0 } as const;
    return { name, url, upstream: upstreams.open({ name, ...bounds }) };
  };
  const dns = createDns([resolver('Cloudflare 1.1.1.1', urls.dns), resolver('Google Public DNS', urls.dnsFallback)]);

  const bootstrap = upstreams.open({ name: 'IANA', timeoutMs: 3000, maxBytes: 1024 * KIB, concurrency: 1, retries: 0 });
  const registries = upstreams.open({
    // Registries block addresses after 10 to 100 questions a minute; cached answers reduce them.
    ...{ name: 'RDAP', timeoutMs: 5000, maxBytes: 512 * KIB, concurrency: 16, retries: 0 },
    cache: { ttlMs: 10 * MINUTE_MS, staleIfErrorMs: 0, maxEntries: 2000 },
  });

  const files = upstreams.open({ name: 'ECB', timeoutMs: 4000, maxBytes: 8192 * KIB, concurrency: 3, retries: 1 });
  const frankfurter = upstreams.open({
    ...{ name: 'Frankfurter', timeoutMs: 3000, maxBytes: 256 * KIB, concurrency: 3, retries: 0 },
    cache: { ttlMs: 10 * MINUTE_MS, staleIfErrorMs: 24 * HOUR_MS, maxEntries: 1000 },
  });
  const rates: FixingSource[] = [createEcb(files, urls.ecb, clock), createFrankfurter(frankfurter, urls.frankfurter)];
  const firstFixing = <T>(ask: (source: FixingSource) => Promise<T>) =>
    firstToAnswer(
      'reference rates',
      rates.map((source) => () => ask(source)),
    );

  const wikipedia = upstreams.open({
    // Wikimedia asks for at most three requests at a time and for caching (https://www.mediawiki.org/wiki/API:Etiquette).
    ...{ name: 'Wikipedia', timeoutMs: 6000, maxBytes: 4096 * KIB, concurrency: 3, retries: 0 },
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
