import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { sourceSchema } from '../lib/source.ts';
import { DNS_TYPES, type DnsType } from '../upstream/domains/dns.ts';
import { hostNameParam } from './host-name-param.ts';
import type { Sources } from './sources.ts';

const KNOWN = Object.keys(DNS_TYPES) as DnsType[];
const DEFAULT = 'A,AAAA,CNAME,MX,TXT,NS';

const ttl = z.int().nonnegative().meta({ description: 'Seconds for which it may still be kept' });
const name = (description: string) => z.string().meta({ description });
const seconds = z.int().nonnegative();

const record = {
  A: z.strictObject({ address: z.ipv4(), ttl }),
  AAAA: z.strictObject({ address: z.ipv6(), ttl }),
  CNAME: z.strictObject({ target: name('The name that this one stands for'), ttl }),
  MX: z.strictObject({
    preference: z.int().meta({ description: 'Lower is tried first' }),
    exchange: name('Mail server; "." says that the domain takes no mail'),
    ttl,
  }),
  TXT: z.strictObject({ text: z.string().meta({ description: 'The strings of the record as one text' }), ttl }),
  NS: z.strictObject({ nameServer: name('Authoritative name server'), ttl }),
  SOA: z.strictObject({
    primaryNameServer: name('Where the zone is kept'),
    hostmaster: name('Mailbox of the zone, its first dot standing for @'),
    serial: z.int().nonnegative(),
    refreshSeconds: seconds,
    retrySeconds: seconds,
    expireSeconds: seconds,
    minimumSeconds: seconds.meta({ description: 'How long absence may be kept' }),
    ttl,
  }),
  CAA: z.strictObject({
    flags: z.int().min(0).max(255).meta({ description: '128: must be understood' }),
    tag: z.string().meta({ description: 'issue, issuewild, iodef, …' }),
    value: z.string(),
    ttl,
  }),
} satisfies Record<DnsType, z.ZodType>;

const lists = z.strictObject({
  A: z.array(record.A),
  AAAA: z.array(record.AAAA),
  CNAME: z.array(record.CNAME),
  MX: z.array(record.MX),
  TXT: z.array(record.TXT),
  NS: z.array(record.NS),
  SOA: z.array(record.SOA),
  CAA: z.array(record.CAA),
});

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

/** The DNS records of a name at this moment. */
export const domainsDns = defineEndpoint({
  path: '/domains/dns',
  access: 'paid',
  priceUsd: '0.001',
  label: 'DNS records',
  summary: 'Live DNS records of a name with their TTLs, and whether the answers were validated under DNSSEC.',
  params: z.object({ name: hostNameParam('Host name; IDN is converted', { underscores: true }), type }),
  result: z.strictObject({
    name: z.string().meta({ description: 'The name in ASCII, lower case' }),
    status: z.enum(['NOERROR', 'NXDOMAIN', 'SERVFAIL']).meta({
      description:
        'NXDOMAIN: the name, or the end of its aliases, does not exist. SERVFAIL: DNSSEC validation failed (bogus); any other server failure is a 502',
    }),
    exists: z.boolean().nullable().meta({ description: 'Whether the name exists; null when validation failed' }),
    dnssecValidated: z.boolean().meta({
      description:
        'Every answer, or proof of absence, was signed and validated; false for unsigned zones and bogus answers',
    }),
    records: lists.partial().meta({ description: 'A list for each type asked for, empty where there is none' }),
    aliases: z
      .array(z.strictObject({ name: z.string(), target: z.string(), ttl }))
      .meta({ description: 'The CNAME chain from the name on, in order; the addresses are those of its end' }),
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
  async run({ name, type: types }, { dns }: Pick<Sources, 'dns'>, signal) {
    const { status, exists, validated, records, aliases, resolver, retrievedAtMs } = await dns.lookup(
      name,
      types,
      signal,
    );
    return {
      name,
      status,
      exists,
      dnssecValidated: validated,
      records: mutable(records),
      aliases: [...aliases],
      source: { ...resolver, retrievedAt: Math.floor(retrievedAtMs / 1000) },
    };
  },
});

/** Copies the records so that they can be changed, and sorts mail servers by preference, the order in which senders try them. */
function mutable(records: Awaited<ReturnType<Sources['dns']['lookup']>>['records']): Partial<z.input<typeof lists>> {
  const copy = structuredClone(records) as Partial<z.input<typeof lists>>;
  copy.MX?.sort((a, b) => a.preference - b.preference);
  return copy;
}
