import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { AppError, BadParameter, NotFound } from '../errors.ts';
import { sourceSchema } from '../lib/service.ts';
import { isListedTld, parseHostName, registrableDomain } from '../lib/url.ts';
import { DNS_TYPES, type Dns, type DnsType } from '../upstream/domains/dns.ts';
import type { Rdap, RdapAnswer } from '../upstream/domains/rdap.ts';
import { field, readFrom } from './fields.ts';

// A domain name: its records in the DNS at this moment, and its registration. The registry is asked for its RDAP
// record; the root zone has the last word on an unknown top-level domain. Without a record the DNS decides what can be
// said.

const KNOWN = Object.keys(DNS_TYPES) as DnsType[];
const DEFAULT = 'A,AAAA,CNAME,MX,TXT,NS';

const ttl = field.count('Seconds for which it may still be kept');
const seconds = z.int().nonnegative();

const list = <T extends z.ZodRawShape>(shape: T) => z.array(z.strictObject({ ...shape, ttl }));

const lists = z.strictObject({
  A: list({ address: z.ipv4() }),
  AAAA: list({ address: z.ipv6() }),
  CNAME: list({ target: field.text('The name that this one stands for') }),
  MX: list({
    preference: z.int().meta({ description: 'Lower is tried first' }),
    exchange: field.text('Mail server; "." says that the domain takes no mail'),
  }),
  TXT: list({ text: field.text('The strings of the record as one text') }),
  NS: list({ nameServer: field.text('Authoritative name server') }),
  SOA: list({
    primaryNameServer: field.text('Where the zone is kept'),
    hostmaster: field.text('Mailbox of the zone, its first dot standing for @'),
    serial: z.int().nonnegative(),
    refreshSeconds: seconds,
    retrySeconds: seconds,
    expireSeconds: seconds,
    minimumSeconds: seconds.meta({ description: 'How long absence may be kept' }),
  }),
  CAA: list({
    flags: z.int().min(0).max(255).meta({ description: '128: must be understood' }),
    tag: field.text('issue, issuewild, iodef, …'),
    value: z.string(),
  }),
} satisfies Record<DnsType, z.ZodType>);

const type = z
  .string()
  .max(100)
  .transform((text, context): DnsType[] => {
    const asked = [...new Set(text.split(',').map((part) => part.trim().toUpperCase()))];
    if (asked.every((part): part is DnsType => (KNOWN as string[]).includes(part))) return asked;
    context.addIssue({ code: 'custom', message: `a comma-separated list of ${KNOWN.join(', ')}` });
    return z.NEVER;
  })
  .prefault(DEFAULT)
  .meta({ description: `Comma-separated record types out of ${KNOWN.join(', ')}`, default: DEFAULT });

export const domainsDns = defineEndpoint({
  path: '/domains/dns',
  access: 'paid',
  priceUsd: '0.001',
  label: 'DNS records',
  summary: 'Live DNS records of a name with their TTLs, and whether the answers were validated under DNSSEC.',
  notFor: 'owners of a domain, or for records as other resolvers see them',
  tags: 'resolve a hostname to an ip, mx mail server, txt spf dmarc lookup, nameserver, dig, nslookup',
  ofChain: false,
  params: z.object({ name: hostNameParam('Host name; IDN is converted', { underscores: true }), type }),
  result: z.strictObject({
    name: field.text('The name in ASCII, lower case'),
    status: z.enum(['NOERROR', 'NXDOMAIN', 'SERVFAIL']).meta({
      description:
        'NXDOMAIN: the name, or the end of its aliases, does not exist. SERVFAIL: DNSSEC validation failed (bogus); ' +
        'any other server failure is a 502',
    }),
    exists: field.booleanOrNull('Whether the name exists; null when validation failed'),
    dnssecValidated: field.boolean(
      'Every answer, or proof of absence, was signed and validated; false for unsigned zones and bogus answers',
    ),
    records: lists.partial().meta({ description: 'A list for each type asked for, empty where there is none' }),
    aliases: field.list('The CNAME chain from the name on, in order; the addresses are those of its end', {
      name: z.string(),
      target: z.string(),
      ttl,
    }),
    source: sourceSchema,
  }),
  example: {
    params: { name: 'www.example.com', type: 'A,MX' },
    result: {
      name: 'www.example.com',
      status: 'NOERROR',
      exists: true,
      dnssecValidated: true,
      records: { A: [{ address: '104.20.23.154', ttl: 274 }], MX: [] },
      aliases: [],
      source: { name: 'Cloudflare 1.1.1.1', url: 'https://cloudflare-dns.com/dns-query', retrievedAt: 1795199401 },
    },
  },
  async run({ name, type: types }, { dns }: { dns: Dns }, signal) {
    const { validated, records, resolver, retrievedAtMs, ...answer } = await dns.lookup(name, types, signal);
    return {
      name,
      ...answer,
      dnssecValidated: validated,
      records: mutable(records),
      source: { name: resolver.name, ...readFrom({ url: resolver.url, retrievedAtMs }) },
    };
  },
});

/** A copy with the mail servers in the order in which senders try them. */
function mutable(records: Awaited<ReturnType<Dns['lookup']>>['records']): Partial<z.input<typeof lists>> {
  const copy = structuredClone(records) as Partial<z.input<typeof lists>>;
  copy.MX?.sort((a, b) => a.preference - b.preference);
  return copy;
}

const time = (description: string) => field.at(description).nullable();

export const domainsWhois = defineEndpoint({
  path: '/domains/whois',
  access: 'paid',
  priceUsd: '0.003',
  label: 'Domain registration',
  summary:
    "Registrar, creation and expiry dates, status codes and name servers from the registry's RDAP record, and " +
    'whether the name looks available.',
  notFor: 'DNS records, or for a person’s name or e-mail address',
  tags: 'who owns a domain, owner, free to register, available, when it expires',
  ofChain: false,
  params: z.object({ domain: hostNameParam('Registrable domain; IDN is converted', { underscores: false }) }),
  result: z.strictObject({
    domain: field.text('The registrable domain that was looked up, in ASCII'),
    asked: field.text('The name that was asked for; a name below a domain is reduced to the domain'),
    registered: field.booleanOrNull(
      'null when unknown: neither the registry nor the DNS has it, but it may be registered',
    ),
    looksAvailable: field.boolean(
      'The responsible registry has no record and the DNS has no name servers for it. Reserved and premium names ' +
        'look the same',
    ),
    registrar: z
      .strictObject({
        name: field.textOrNull('null when withheld'),
        ianaId: field.textOrNull('Number given by IANA, as text; null when it has none'),
      })
      .nullable(),
    createdAt: time('Registration'),
    updatedAt: time('Last change'),
    expiresAt: time('Expiry at the registry; some country registries publish none'),
    status: field.orNull('As in RDAP, for example "client transfer prohibited"', z.array(z.string())),
    nameServers: field.orNull('As the registry knows them', z.array(z.string())),
    dnssecSigned: field.booleanOrNull('Whether the registry holds a DS record for it'),
    source: sourceSchema,
  }),
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
  async run({ domain: asked }, { dns, rdap }: { dns: Dns; rdap: Rdap }, signal) {
    const domain = registrableDomain(asked);
    if (domain === null) {
      throw new BadParameter([
        { path: 'domain', message: `${asked} is a public suffix: names are registered below it` },
      ]);
    }
    const tld = domain.slice(domain.lastIndexOf('.') + 1);
    const [answer, exists] = await Promise.all([
      rdap.domain(domain, signal).catch((error: unknown) => ({ error })),
      // The list is as old as the library: the root zone has the last word on a name that is not in it.
      isListedTld(tld) || existsInRoot(dns, tld, signal),
    ]);
    if (!exists)
      throw new NotFound(`there is no top-level domain .${tld}: the root zone has no such name`, 'no_such_tld');
    if (answer === null) throw new NotFound(`the registry of .${tld} publishes no RDAP`, 'no_rdap_for_tld');
    if ('error' in answer) throw answer.error;
    if (answer.registration === null) {
      const standing = await interpretNoRecord(dns, domain, answer, signal);
      return { domain, asked, ...NO_RECORD, ...standing, source: sourceOf(answer, null) };
    }
    const { termsUrl, ...registration } = answer.registration;
    const source = sourceOf(answer, termsUrl);
    return { domain, asked, registered: true, looksAvailable: false, ...registration, source };
  },
});

/** True where the DNS cannot say: no name is called missing for a failure. */
async function existsInRoot(dns: Dns, tld: string, signal: AbortSignal): Promise<boolean> {
  const found = await dns.lookup(tld, ['NS'], signal).catch((error: unknown) => {
    signal.throwIfAborted();
    if (error instanceof AppError) return null;
    throw error;
  });
  return found?.exists !== false;
}

const NO_RECORD = {
  registrar: null,
  createdAt: null,
  updatedAt: null,
  expiresAt: null,
  status: null,
  nameServers: null,
  dnssecSigned: null,
};

/**
 * What "no record" means. A name with name servers or an alias is registered. A failing DNSSEC validation means that it
 * is signed, so it may be. With a registry that may not be the responsible one it is unknown. Else it looks available.
 */
async function interpretNoRecord(dns: Dns, domain: string, { vouched }: RdapAnswer, signal: AbortSignal) {
  const { status, records, aliases } = await dns.lookup(domain, ['NS'], signal);
  if ((records.NS?.length ?? 0) > 0 || aliases.length > 0) return { registered: true, looksAvailable: false };
  if (status === 'SERVFAIL' || !vouched) return { registered: null, looksAvailable: false };
  return { registered: false, looksAvailable: true };
}

function sourceOf({ registry, ...read }: RdapAnswer, termsUrl: string | null) {
  return {
    name: `RDAP of ${registry}`,
    ...readFrom(read),
    ...(termsUrl !== null && { licence: `Terms of use: ${termsUrl}` }),
  };
}

/** A host name, IDN too, parsed to its ASCII form, so that equal requests have equal parameters. */
function hostNameParam(description: string, { underscores }: { underscores: boolean }) {
  return z
    .string({ error: 'required: a host name such as example.com' })
    .max(1000, 'longer than 1000 characters')
    .transform((text, context) => {
      const parsed = parseHostName(text);
      if ('name' in parsed && (underscores || !parsed.name.includes('_'))) return parsed.name;
      const message = 'fault' in parsed ? parsed.fault : 'registrable names have no underscores';
      context.addIssue({ code: 'custom', message });
      return z.NEVER;
    })
    .meta({ description });
}
