import { domainToASCII } from 'node:url';
import { z } from 'zod';
import { UpstreamFailed } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import { MIB, MINUTE_MS, type Opening, type Retrieved, type Upstream } from '../client/client.ts';
import { parseJson } from '../client/exchange.ts';

export interface RdapAnswer extends Retrieved {
  readonly registry: string;
  /** Null when the registry has no record. The name may still not be free: reserved names have no record either. */
  readonly registration: Registration | null;
  /** Whether IANA's list names that server as the one responsible. */
  readonly vouched: boolean;
}

/** A field that the registry omits or redacts is null. Times are Unix seconds. */
interface Registration {
  readonly registrar: { readonly name: string | null; readonly ianaId: string | null } | null;
  readonly createdAt: number | null;
  readonly updatedAt: number | null;
  readonly expiresAt: number | null;
  readonly status: string[] | null;
  readonly nameServers: string[] | null;
  readonly dnssecSigned: boolean | null;
  readonly termsUrl: string | null;
}

export interface Rdap {
  /** The registry's answer for a registrable domain in ASCII; null when its registry publishes no RDAP. */
  domain(domain: string, signal?: AbortSignal): Promise<RdapAnswer | null>;
}

const LIST_BOUNDS = { name: 'IANA', timeoutMs: 3000, maxBytes: MIB, concurrency: 1, retries: 0 } as const;
const BOUNDS = { name: 'RDAP', timeoutMs: 5000, maxBytes: MIB / 2, concurrency: 16, retries: 0 } as const;
/** Registries block addresses after 10 to 100 questions a minute; the cache saves some. */
const CACHE = { ttlMs: 10 * MINUTE_MS, staleIfErrorMs: 0, maxEntries: 2000 };

/** A domain's registry, over RDAP. Registrars are not asked: their records would add only latency and personal data. */
export function createRdap({ upstreams, config, clock }: Opening<'names'>): Rdap {
  const bootstrap = createRdapBootstrap(upstreams.open(LIST_BOUNDS), config.names.rdapBootstrap, clock);
  const upstream = upstreams.open({ ...BOUNDS, cache: CACHE });
  return {
    async domain(domain, signal) {
      const server = await bootstrap.serverFor(domain, signal);
      if (server === null) return null;
      const url = `${server.url}domain/${domain}`;
      const { host } = new URL(url);
      const at = { ...server, registry: host, url };
      const request = { url, accept: 'application/rdap+json, application/json;q=0.9', signal };
      const { status, headers, body, retrievedAtMs } = await upstream.fetch(request);
      if (status === 404) return { ...at, registration: null, retrievedAtMs };
      if (status !== 200) throw new UpstreamFailed(upstream.name, `${host} answered HTTP ${status}`);
      const record = parseJson(upstream.name, headers['content-type'], body, rdapDomainSchema);
      if (!isRecordOf(domain, record))
        throw new UpstreamFailed(upstream.name, `${host} answered with the record of another name`);
      return { ...at, registration: registrationOf(record), retrievedAtMs };
    },
  };
}

interface RdapBootstrap {
  /** Null when the registry publishes no RDAP. Rejects with UpstreamFailed when only the shipped copy could say so. */
  serverFor(domain: string, signal?: AbortSignal): Promise<Pick<RdapAnswer, 'url' | 'vouched'> | null>;
}

/** RFC 9224: each service is the list of its top-level domains and the list of its base URLs. */
const bootstrapSchema = z.object({
  publication: z.string(),
  services: z.array(z.tuple([z.array(z.string()), z.array(z.string())])).min(1),
});

/** IANA sends `max-age=86400`; entries change a few times a month. */
const FRESH_MS = 24 * 3_600_000;
/** After a failed read the current copy is used for this time, so that not every call waits for a dead host. */
const RETRY_MS = 10 * 60_000;

/** IANA's list at `url`, read once a day. After a failure the last good copy is used, or else the shipped one. */
export function createRdapBootstrap(upstream: Upstream, url: string, clock: Clock): RdapBootstrap {
  let servers: ServersByTld | null = null;
  // Invariant: the file is not asked for before this time, whether the last read failed or not.
  let dueMs = 0;

  async function refresh(signal?: AbortSignal): Promise<void> {
    if (clock.nowMs() < dueMs) return;
    try {
      const answer = await upstream.json({ url, signal }, bootstrapSchema);
      if (answer !== null) servers = serversOf(answer.services);
      dueMs = clock.nowMs() + (answer === null ? RETRY_MS : FRESH_MS);
    } catch (error) {
      if (signal?.aborted) throw error;
      dueMs = clock.nowMs() + RETRY_MS;
    }
  }

  return {
    async serverFor(domain, signal) {
      await refresh(signal);
      const listed = longestMatch(servers ?? SHIPPED_SERVERS, domain);
      if (listed !== null) return { url: listed, vouched: true };
      const unlisted = longestMatch(UNLISTED_SERVERS, domain);
      if (unlisted !== null) return { url: unlisted, vouched: false };
      if (servers === null) throw new UpstreamFailed(upstream.name, 'the list of RDAP servers cannot be read now');
      return null;
    },
  };
}

function serversOf(services: z.output<typeof bootstrapSchema>['services']): ServersByTld {
  return new Map(
    services.flatMap(([tlds, urls]) => {
      const url = bestOf(urls);
      return url === null ? [] : tlds.map((tld) => [tld.toLowerCase(), url] as const);
    }),
  );
}

/** Prefers https. Two country codes offer only http, which is acceptable for a public record. */
function bestOf(urls: readonly string[]): string | null {
  const usable = urls.filter((url) => /^https?:/.test(url) && URL.canParse(url) && !url.includes('%'));
  const url = usable.find((candidate) => candidate.startsWith('https:')) ?? usable[0];
  return url === undefined ? null : url.replace(/\/*$/, '/');
}

/** RFC 9224, 4: the entry that shares the most labels, from the right. */
function longestMatch(servers: ServersByTld, domain: string): string | null {
  const labels = domain.split('.');
  for (let from = 0; from < labels.length; from++) {
    const url = servers.get(labels.slice(from).join('.'));
    if (url !== undefined) return url;
  }
  return null;
}

const event = z.object({ eventAction: z.string(), eventDate: z.string() });
const link = z.object({ href: z.string().optional() });
/** A jCard property: name, parameters, type, value. */
const property = z.tuple([z.string(), z.unknown(), z.string(), z.unknown()], z.unknown());

/** RFC 9083's domain object, in the variants that registries send. Contacts of persons are left out: none is sold. */
export const rdapDomainSchema = z.object({
  objectClassName: z.string().regex(/^domain$/i),
  ldhName: z.string().optional(),
  unicodeName: z.string().optional(),
  status: z.array(z.string()).optional(),
  events: z.array(event).optional(),
  nameservers: z.array(z.object({ ldhName: z.string().optional() })).optional(),
  secureDNS: z.object({ delegationSigned: z.boolean().optional() }).optional(),
  entities: z
    .array(
      z.object({
        roles: z.array(z.string()).optional(),
        publicIds: z.array(z.object({ type: z.string(), identifier: z.string() })).optional(),
        vcardArray: z
          .tuple([z.string(), z.array(property)])
          .optional()
          .catch(undefined),
      }),
    )
    .optional(),
  notices: z.array(z.object({ title: z.string().optional(), links: z.array(link).optional() })).optional(),
});
type RdapDomain = z.output<typeof rdapDomainSchema>;

/** Whether the record is of the given ASCII domain. Registries write names in any letter case. */
export function isRecordOf(domain: string, { ldhName, unicodeName }: RdapDomain): boolean {
  const name = ldhName ?? unicodeName;
  return name !== undefined && domainToASCII(name.toLowerCase()).replace(/\.$/, '') === domain;
}

export function registrationOf(record: RdapDomain): Registration {
  return {
    registrar: registrarOf(record),
    createdAt: eventAt(record, 'registration'),
    updatedAt: eventAt(record, 'last changed'),
    expiresAt: eventAt(record, 'expiration'),
    status: filled(record.status),
    nameServers: filled(record.nameservers?.map(({ ldhName = '' }) => ldhName.toLowerCase().replace(/\.$/, ''))),
    dnssecSigned: record.secureDNS?.delegationSigned ?? null,
    termsUrl: termsOf(record),
  };
}

function registrarOf({ entities = [] }: RdapDomain): Registration['registrar'] {
  const entity = entities.find(({ roles }) => roles?.includes('registrar'));
  if (!entity) return null;
  const properties = entity.vcardArray?.[1] ?? [];
  const property = (name: string) => textOf(properties.find(([key]) => key === name)?.[3]);
  const id = entity.publicIds?.find(({ type }) => /^iana registrar id$/i.test(type));
  return { name: property('fn') ?? property('org'), ianaId: textOf(id?.identifier) };
}

/** RFC 3339. Some registries leave out the offset; the time is then read as UTC, as RDAP's dates are. */
const DATE_TIME = /^\d{4}-\d{2}-\d{2}(?:[Tt ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?([Zz]|[+-]\d{2}:?\d{2})?$/;

/** The time of the newest event of that name: registries list one, or a history. */
function eventAt({ events = [] }: RdapDomain, action: string): number | null {
  const times = events
    .filter(({ eventAction }) => eventAction.toLowerCase() === action)
    .map(({ eventDate }) => {
      const match = DATE_TIME.exec(eventDate);
      const ms = match ? Date.parse(match[1] || eventDate.length === 10 ? eventDate : `${eventDate}Z`) : Number.NaN;
      return Math.floor(ms / 1000);
    });
  const known = times.filter((time) => Number.isFinite(time) && time >= 0);
  return known.length > 0 ? Math.max(...known) : null;
}

function filled(values: readonly string[] | undefined): string[] | null {
  const kept = values?.map(textOf).filter((value) => value !== null) ?? [];
  return kept.length > 0 ? [...new Set(kept)] : null;
}

/** The value as text. Null when it is empty or says that it is redacted, as RFC 9537 allows. */
function textOf(value: unknown): string | null {
  return typeof value === 'string' && value.trim() !== '' && !/\bredacted\b/i.test(value) ? value.trim() : null;
}

function termsOf({ notices = [] }: RdapDomain): string | null {
  const notice = notices.find(({ title = '' }) => /\b(terms|legal|copyright)\b/i.test(title));
  const href = notice?.links?.find((candidate) => /^https?:\/\/\S+$/.test(candidate.href ?? ''))?.href;
  return href ?? null;
}

type ServersByTld = ReadonlyMap<string, string>;

/** A part of IANA's file (https://data.iana.org/rdap/dns.json) of 2025-11-06, until the file itself has been read. */
export const SHIPPED_SERVERS: ServersByTld = invert({
  'https://rdap.verisign.com/{tld}/v1/': 'com net',
  'https://rdap.publicinterestregistry.org/rdap/': 'org',
  'https://rdap.identitydigital.services/rdap/': 'info mobi pro live life world today asia travel aero ai bm mu',
  'https://rdap.nic.{tld}/':
    'biz club vip paris cat tel museum bank ad ar cm cr cv cx cz fr gs hn ht ly ml ms nf pg pm re sd ss tf tv ' +
    'vi wf yt zm',
  'https://tld-rdap.verisign.com/{tld}/v1/': 'name cc',
  'https://rdap.centralnic.com/{tld}/': 'xyz online site store tech icu fun space website art london fm fo gd pw vg',
  'https://rdap.gmoregistry.net/rdap/': 'shop',
  'https://rdap.zdnsgtld.com/top/': 'top',
  'https://pubapi.registry.google/rdap/': 'app dev page new',
  'https://rdap.registry.{tld}/rdap/': 'cloud coop',
  'https://rdap.tucowsregistry.net/rdap/': 'link click',
  'https://rdap.blog.fury.ca/rdap/': 'blog',
  'https://rdap.flexireg.net/': 'moscow',
  'https://rdap.nic.berlin/v1/': 'berlin',
  'https://rdap.nominet.uk/{tld}/': 'jobs pn uk',
  'https://rdap.iana.org/': 'int',
  'https://rdap.eco.fury.ca/rdap/': 'eco',
  'https://api.rdap.nic.xn--p1acf/': 'xn--p1acf',
  'https://rdap.registro.br/': 'br',
  'https://rdap.ca.fury.ca/rdap/': 'ca',
  'https://rdap.registry.{tld}/': 'ec gy',
  'https://rdap.fi/rdap/rdap/': 'fi',
  'https://www.rdap.fj/': 'fj',
  'https://rdap.pandi.id/rdap/': 'id',
  'https://rdap.nixiregistry.in/rdap/': 'in',
  'https://rdap.isnic.is/rdap/': 'is',
  'https://rdap.kenic.or.ke/': 'ke',
  'http://rdap.cctld.kg/': 'kg',
  'https://whois.kyregistry.ky/rdap/': 'ky',
  'https://rdap.lbdr.org.lb/': 'lb',
  'http://rdap.nic.mg/': 'mg',
  'https://keetmans.omadhina.co.na/': 'na',
  'https://rdap.sidn.nl/': 'nl',
  'https://rdap.norid.no/': 'no',
  'https://rdap.dns.pl/': 'pl',
  'https://rdap.ricta.org.rw/': 'rw',
  'https://rdap.register.si/': 'si',
  'https://whois.sr/rdap/': 'sr',
  'https://rdap.thains.co.th/': 'th',
  'https://rdap.tonicregistry.to/rdap/': 'to',
  'https://ccrdap.twnic.tw/tw/': 'tw',
  'https://whois.tznic.or.tz/rdap/': 'tz',
  'https://rdap.hostmaster.ua/': 'ua',
  'https://rdap.cctld.uz/': 'uz',
  'https://rdap.y.net.ye/': 'ye',
});

/** Not in IANA's file (whoisit, 2026-01; case/rdap-cctld-ts, 2025-11): "no such name" from them proves nothing. */
export const UNLISTED_SERVERS: ServersByTld = invert({
  'https://rdap.identitydigital.services/rdap/': 'ac ag bz io lc me mn pr sc sh vc',
  'https://rdap.centralnic.com/{tld}/': 'bh gl',
  'https://rdap.nic.{tld}/': 'ch li us',
  'https://rdap.registry.co/co/': 'co',
  'https://rdap.denic.de/': 'de',
  'https://rdap.mynic.my/rdap/': 'my',
});

function invert(servers: Readonly<Record<string, string>>): ServersByTld {
  return new Map(
    Object.entries(servers).flatMap(([url, tlds]) =>
      tlds.split(' ').map((tld) => [tld, url.replace('{tld}', tld)] as const),
    ),
  );
}
