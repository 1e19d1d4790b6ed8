import type { z } from 'zod';
import { baseUrl } from './fields.ts';

/** The sources of domains, currencies and encyclopedias. A mirror or a test server can replace each. */
export interface NamesConfig {
  /** Answers `?name=…&type=…` in the JSON form of DNS over HTTPS. */
  readonly dns: string;
  readonly dnsFallback: string;
  /** IANA's file of RDAP servers. */
  readonly rdapBootstrap: string;
  /** The folder of the ECB's files. */
  readonly ecb: string;
  /** Asked when the ECB fails; ends with the version. */
  readonly frankfurter: string;
  /** `{lang}` stands for the language edition. */
  readonly wikipedia: string;
}

/** The environment's keys of these sources. */
export const namesEnvironment = {
  UPSTREAM_DNS_URL: baseUrl.default('https://cloudflare-dns.com/dns-query'),
  UPSTREAM_DNS_FALLBACK_URL: baseUrl.default('https://dns.google/resolve'),
  UPSTREAM_RDAP_BOOTSTRAP_URL: baseUrl.default('https://data.iana.org/rdap/dns.json'),
  UPSTREAM_ECB_URL: baseUrl.default('https://www.ecb.europa.eu/stats/eurofxref'),
  UPSTREAM_FRANKFURTER_URL: baseUrl.default('https://api.frankfurter.dev/v1'),
  UPSTREAM_WIKIPEDIA_URL: baseUrl.default('https://{lang}.wikipedia.org'),
};

/** Builds the sources. */
export function assembleNames(env: z.output<z.ZodObject<typeof namesEnvironment>>): NamesConfig {
  return {
    dns: env.UPSTREAM_DNS_URL,
    dnsFallback: env.UPSTREAM_DNS_FALLBACK_URL,
    rdapBootstrap: env.UPSTREAM_RDAP_BOOTSTRAP_URL,
    ecb: env.UPSTREAM_ECB_URL,
    frankfurter: env.UPSTREAM_FRANKFURTER_URL,
    wikipedia: env.UPSTREAM_WIKIPEDIA_URL,
  };
}
