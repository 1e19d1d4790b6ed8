import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { AppError, BadParameter, NotFound } from '../errors.ts';
import { sourceSchema } from '../lib/source.ts';
import { isListedTld, registrableDomain } from '../lib/url.ts';
import type { RdapAnswer } from '../upstream/domains/rdap.ts';
import { atField } from './chain-fields.ts';
import { hostNameParam } from './host-name-param.ts';
import type { Sources } from './sources.ts';

const text = (description: string) => z.string().nullable().meta({ description });
const time = (description: string) => atField(description).nullable();

const result = z.strictObject({
  domain: z.string().meta({ description: 'The registrable domain that was looked up, in ASCII' }),
  asked: z
    .string()
    .meta({ description: 'The name that was asked for; a name below a domain is reduced to the domain' }),
  registered: z.boolean().nullable().meta({
    description: 'null when unknown: neither the registry nor the DNS has it, but it may be registered',
  }),
  looksAvailable: z.boolean().meta({
    description:
      'The responsible registry has no record and the DNS has no name servers for it. Reserved and premium names look the same',
  }),
  registrar: z
    .strictObject({
      name: text('null when withheld'),
      ianaId: text('Number given by IANA, as text; null when it has none'),
    })
    .nullable(),
  createdAt: time('Registration'),
  updatedAt: time('Last change'),
  expiresAt: time('Expiry at the registry; some country registries publish none'),
  status: z.array(z.string()).nullable().meta({ description: 'As in RDAP, for example "client transfer prohibited"' }),
  nameServers: z.array(z.string()).nullable().meta({ description: 'As the registry knows them' }),
  dnssecSigned: z.boolean().nullable().meta({ description: 'Whether the registry holds a DS record for it' }),
  source: sourceSchema,
});

/** The members that are unknown when the registry has no record. */
const NO_RECORD = {
  registrar: null,
  createdAt: null,
  updatedAt: null,
  expiresAt: null,
  status: null,
  nameServers: null,
  dnssecSigned: null,
};

/** A domain's registration, and whether the name looks available. */
export const domainsWhois = defineEndpoint({
  path: '/domains/whois',
  access: 'paid',
  priceUsd: '0.003',
  label: 'Domain registration',
  summary:
    "Registrar, creation and expiry dates, status codes and name servers from the registry's RDAP record, and whether the name looks available.",
  params: z.object({
    domain: hostNameParam('Registrable domain; IDN is converted', { underscores: false }),
  }),
  result,
  example: {
    params: { domain: 'example.com' },
    result: {
      domain: 'example.com',
      asked: 'example.com',
      registered: true,
      looksAvailable: false,
      registrar: { name: 'RESERVED-Internet Assigned Numbers Authority', ianaId: '376' },
      createdAt: 808372800,
      updatedAt: 1786867299,
      expiresAt: 1818302400,
      status: ['client delete prohibited', 'client transfer prohibited', 'client update prohibited'],
      nameServers: ['elliott.ns.cloudflare.com', 'hera.ns.cloudflare.com'],
      dnssecSigned: true,
      source: {
        name: 'RDAP of rdap.verisign.com',
        url: 'https://rdap.verisign.com/com/v1/domain/example.com',
        retrievedAt: 1795199401,
      },
    },
  },
  async run({ domain: asked }, { dns, rdap }: Pick<Sources, 'dns' | 'rdap'>, signal) {
    const domain = registrableDomain(asked);
    if (domain === null) {
      throw new BadParameter([
        { path: 'domain', message: `${asked} is a public suffix: names are registered below it` },
      ]);
    }
    const tld = domain.slice(domain.lastIndexOf('.') + 1);
    const [answer, exists] = await Promise.all([
      rdap.domain(domain, signal).catch((error: unknown) => ({ error })),
      // The list is as old as the library, so the root zone has the last word on a name that is not in it.
      isListedTld(tld) || existsInRoot(dns, tld, signal),
    ]);
    if (!exists)
      throw new NotFound(`there is no top-level domain .${tld}: the root zone has no such name`, 'no_such_tld');
    if (answer === null) {
      throw new NotFound(`the registry of .${tld} publishes no RDAP`, 'no_rdap_for_tld');
    }
    if ('error' in answer) throw answer.error;
    if (answer.registration === null) {
      return {
        domain,
        asked,
        ...NO_RECORD,
        ...(await interpretNoRecord(dns, domain, answer, signal)),
        source: sourceOf(answer, null),
      };
    }
    const { termsUrl, ...registration } = answer.registration;
    return {
      domain,
      asked,
      registered: true,
      looksAvailable: false,
      ...registration,
      source: sourceOf(answer, termsUrl),
    };
  },
});

/** Whether the root zone has the name. True where the DNS cannot say, because a name is not called missing for a failure. */
async function existsInRoot(dns: Sources['dns'], tld: string, signal: AbortSignal): Promise<boolean> {
  const found = await dns.lookup(tld, ['NS'], signal).catch((error: unknown) => {
    signal.throwIfAborted();
    if (error instanceof AppError) return null;
    throw error;
  });
  return found?.exists !== false;
}

/**
 * Interprets a registry's "no record".
 * 1. The name has name servers or an alias: it is registered.
 * 2. Its DNSSEC validation fails: it is signed, so it may be registered.
 * 3. The registry is not known to be the responsible one: unknown.
 * 4. Otherwise it looks available.
 */
async function interpretNoRecord(dns: Sources['dns'], domain: string, { vouched }: RdapAnswer, signal: AbortSignal) {
  const { status, records, aliases } = await dns.lookup(domain, ['NS'], signal);
  if ((records.NS?.length ?? 0) > 0 || aliases.length > 0) return { registered: true, looksAvailable: false };
  if (status === 'SERVFAIL' || !vouched) return { registered: null, looksAvailable: false };
  return { registered: false, looksAvailable: true };
}

function sourceOf({ registry, url, retrievedAtMs }: RdapAnswer, termsUrl: string | null) {
  return {
    name: `RDAP of ${registry}`,
    url,
    retrievedAt: Math.floor(retrievedAtMs / 1000),
    ...(termsUrl !== null && { licence: `Terms of use: ${termsUrl}` }),
  };
}
