import { isIPv4, isIPv6 } from 'node:net';
import { z } from 'zod';
import { UpstreamFailed } from '../../errors.ts';
import type { Dated, Opening, Upstream } from '../client/client.ts';
import { parseJson } from '../client/exchange.ts';
import { firstToAnswer } from '../client/failure.ts';

/** `name` is ASCII without a trailing dot. */
export interface Dns {
  lookup(name: string, types: readonly DnsType[], signal?: AbortSignal): Promise<DnsAnswer>;
}

interface DnsAnswer {
  /** SERVFAIL only means a failed validation. Any other server failure is an error. */
  readonly status: 'NOERROR' | 'NXDOMAIN' | 'SERVFAIL';
  /** Whether the asked name itself exists; null when validation failed. */
  readonly exists: boolean | null;
  /** True when every answer, or proof of absence, was signed and validated. */
  readonly validated: boolean;
  readonly records: { readonly [T in DnsType]?: readonly (DnsFields[T] & { ttl: number })[] };
  /** The CNAME chain from the asked name, in order. */
  readonly aliases: { name: string; target: string; ttl: number }[];
  readonly resolver: { readonly name: string; readonly url: string };
  /** When the oldest of its answers was read. */
  readonly retrievedAtMs: number;
}

/** The record types that are sold, with their numbers (IANA, "DNS Parameters"). */
export const DNS_TYPES = { A: 1, AAAA: 28, CNAME: 5, MX: 15, TXT: 16, NS: 2, SOA: 6, CAA: 257 } as const;

export type DnsType = keyof typeof DNS_TYPES;

/** A record's data as fields, without `ttl`. Names have no trailing dot, except the root itself. */
interface DnsFields {
  A: { address: string };
  AAAA: { address: string };
  CNAME: { target: string };
  MX: { preference: number; exchange: string };
  TXT: { text: string };
  NS: { nameServer: string };
  SOA: {
    primaryNameServer: string;
    hostmaster: string;
    serial: number;
    refreshSeconds: number;
    retrySeconds: number;
    expireSeconds: number;
    minimumSeconds: number;
  };
  CAA: { flags: number; tag: string; value: string };
}

/** `url` answers `?name=…&type=…` in the JSON form. */
interface Resolver {
  readonly name: string;
  readonly url: string;
  readonly upstream: Upstream;
}

/** A call asks for up to eight types at once. No cache: records are sold as live. */
const BOUNDS = { timeoutMs: 3000, maxBytes: 256 * 1024, concurrency: 32, retries: 0 } as const;

/** The first resolver that answers for all types gives the whole answer. Buyers can read its JSON at the origin. */
export function createDns({ upstreams, config }: Opening<'names'>): Dns {
  const resolver = (name: string, url: string) => ({ name, url, upstream: upstreams.open({ name, ...BOUNDS }) });
  const resolvers: readonly Resolver[] = [
    resolver('Cloudflare 1.1.1.1', config.names.dns),
    resolver('Google Public DNS', config.names.dnsFallback),
  ];
  return {
    lookup: (name, types, signal) =>
      firstToAnswer(
        'DNS over HTTPS',
        resolvers.map((resolver) => async () => {
          const answers = await Promise.all(types.map((type) => ask(resolver, name, type, signal)));
          const retrievedAtMs = Math.min(...answers.map((answer) => answer.retrievedAtMs));
          return { ...combine(name, answers), resolver: { name: resolver.name, url: resolver.url }, retrievedAtMs };
        }),
      ),
  };
}

/** The JSON form that Cloudflare and Google use. */
const answerSchema = z.object({
  Status: z.int(),
  TC: z.boolean().optional(),
  AD: z.boolean(),
  Question: z.array(z.object({ name: z.string(), type: z.int() })).min(1),
  Answer: z
    .array(z.object({ name: z.string(), type: z.int(), TTL: z.int().nonnegative(), data: z.string() }))
    .default([]),
  Comment: z.union([z.string(), z.array(z.string())]).optional(),
  extended_dns_errors: z.array(z.object({ info_code: z.int() })).optional(),
});
type Answer = z.output<typeof answerSchema>;

/** The media type to ask Cloudflare for; otherwise it answers in the wire format. */
const DNS_JSON = 'application/dns-json';

const NOERROR = 0;
const SERVFAIL = 2;
const NXDOMAIN = 3;
/** RFC 8914's extended errors for a failed validation: 1 and 2 (unsupported algorithms) and 5 to 12. */
const BOGUS_REASONS = new Set([1, 2, 5, 6, 7, 8, 9, 10, 11, 12]);

interface Asked {
  readonly type: DnsType;
  readonly resolver: string;
  readonly answer: Answer;
  readonly retrievedAtMs: number;
}

async function ask(resolver: Resolver, name: string, type: DnsType, signal?: AbortSignal): Promise<Asked> {
  const { data: answer, retrievedAtMs } = await query(resolver, { name, type }, signal);
  const { Status, TC, Question } = answer;
  const [question] = Question;
  if (plainName(question?.name ?? '') !== name || question?.type !== DNS_TYPES[type]) {
    throw new UpstreamFailed(resolver.name, `answered another question than ${type} of ${name}`);
  }
  if (TC === true) throw new UpstreamFailed(resolver.name, `cut its answer for ${type} short`);
  const answered =
    Status === NOERROR ||
    Status === NXDOMAIN ||
    (Status === SERVFAIL && (await isBogus(resolver, name, type, answer, signal)));
  if (!answered) throw new UpstreamFailed(resolver.name, `response code ${Status} for ${type}`);
  return { type, resolver: resolver.name, answer, retrievedAtMs };
}

async function query(
  { name, url, upstream }: Resolver,
  params: Record<string, string>,
  signal?: AbortSignal,
): Promise<Omit<Dated<Answer>, 'url'>> {
  const request = { url: `${url}?${new URLSearchParams(params)}`, accept: DNS_JSON, signal };
  const { status, headers, body, retrievedAtMs } = await upstream.fetch(request);
  if (status !== 200) throw new UpstreamFailed(name, `answered HTTP ${status}`);
  // Cloudflare's media type is JSON without the usual suffix `+json`.
  const type = headers['content-type']?.replace(DNS_JSON, 'application/json');
  return { data: parseJson(name, type, body, answerSchema), retrievedAtMs };
}

/** Whether a failure is one of DNSSEC: the resolver says so, or a query without validation (`cd=1`) succeeds. */
async function isBogus(resolver: Resolver, name: string, type: DnsType, answer: Answer, signal?: AbortSignal) {
  const codes = extendedErrors(answer);
  if (codes.length > 0) return codes.some((code) => BOGUS_REASONS.has(code));
  const { data } = await query(resolver, { name, type, cd: '1' }, signal);
  return data.Status === NOERROR || data.Status === NXDOMAIN;
}

/** Google lists them as objects, Cloudflare as text: `EDE(9): …`. */
function extendedErrors({ extended_dns_errors, Comment = [] }: Answer): number[] {
  if (extended_dns_errors) return extended_dns_errors.map(({ info_code }) => info_code);
  const comments = typeof Comment === 'string' ? [Comment] : Comment;
  return comments.flatMap((comment) => [...comment.matchAll(/\bEDE\((\d+)\)/g)].map((match) => Number(match[1])));
}

function combine(name: string, asked: readonly Asked[]) {
  const aliases = followAliases(name, asked);
  const statuses = asked.map(({ answer }) => answer.Status);
  const absent = statuses.includes(NXDOMAIN) && aliases.length === 0;
  const status = statuses.includes(SERVFAIL) ? 'SERVFAIL' : statuses.includes(NXDOMAIN) ? 'NXDOMAIN' : 'NOERROR';
  return {
    status,
    exists: statuses.includes(NOERROR) || aliases.length > 0 ? true : absent ? false : null,
    validated: asked.every(({ answer }) => answer.AD && answer.Status !== SERVFAIL),
    records: Object.fromEntries(asked.map((one) => [one.type, recordsOf(name, one)])),
    aliases,
  } as const;
}

function followAliases(name: string, asked: readonly Asked[]) {
  const rows = asked.flatMap(({ answer }) => answer.Answer).filter((row) => row.type === DNS_TYPES.CNAME);
  const byOwner = new Map(rows.map((row) => [plainName(row.name), row]));
  const chain: { name: string; target: string; ttl: number }[] = [];
  // Each owner is removed when it is passed, so that a loop ends.
  for (let owner = name, row = byOwner.get(owner); row !== undefined; row = byOwner.get(owner)) {
    byOwner.delete(owner);
    const target = plainName(row.data);
    chain.push({ name: owner, target, ttl: row.TTL });
    owner = target;
  }
  return chain;
}

function recordsOf(name: string, { type, resolver, answer }: Asked) {
  // CNAME rows of the chain are reported as aliases. Only the CNAME of the asked name itself is a record.
  const rows = answer.Answer.filter((row) => row.type === DNS_TYPES[type]).filter(
    (row) => type !== 'CNAME' || plainName(row.name) === name,
  );
  return rows.map((row) => {
    const fields = parseRecordData(type, row.data);
    if (fields === null) throw new UpstreamFailed(resolver, `a ${type} record that cannot be read`);
    return { ...fields, ttl: row.TTL };
  });
}

const PARSERS: { [T in DnsType]: (data: string) => DnsFields[T] | null } = {
  A: (data) => (isIPv4(data) ? { address: data } : null),
  AAAA: (data) => (isIPv6(data) ? { address: data } : null),
  CNAME: (data) => named(data, (target) => ({ target })),
  MX: parseMx,
  TXT: (data) => ({ text: parseText(data) }),
  NS: (data) => named(data, (nameServer) => ({ nameServer })),
  SOA: parseSoa,
  CAA: parseCaa,
};

/** Null when the data is not in the resolvers' JSON form. */
export function parseRecordData<T extends DnsType>(type: T, data: string): DnsFields[T] | null {
  return PARSERS[type](data);
}

/** Without its trailing dot, in lower case; the root stays ".", so that a null MX (RFC 7505) is not an empty string. */
export function plainName(name: string): string {
  return name === '.' ? name : name.replace(/\.$/, '').toLowerCase();
}

function named<T>(data: string, build: (name: string) => T): T | null {
  return /^\S+$/.test(data) ? build(plainName(data)) : null;
}

function parseMx(data: string): DnsFields['MX'] | null {
  const match = /^(\d{1,5}) (\S+)$/.exec(data);
  return match ? { preference: Number(match[1]), exchange: plainName(match[2] ?? '') } : null;
}

function parseSoa(data: string): DnsFields['SOA'] | null {
  const match = /^(\S+) (\S+) (\d{1,10}) (\d{1,10}) (\d{1,10}) (\d{1,10}) (\d{1,10})$/.exec(data);
  if (!match) return null;
  const [, mname = '', rname = '', ...numbers] = match;
  const [serial = 0, refreshSeconds = 0, retrySeconds = 0, expireSeconds = 0, minimumSeconds = 0] = numbers.map(Number);
  return {
    primaryNameServer: plainName(mname),
    hostmaster: plainName(rname),
    serial,
    refreshSeconds,
    retrySeconds,
    expireSeconds,
    minimumSeconds,
  };
}

/** One or more quoted strings and nothing else: Cloudflare's form of TXT data. */
const QUOTED = /^"(?:[^"\\]|\\.)*"(?:\s+"(?:[^"\\]|\\.)*")*$/s;

/** Cloudflare quotes TXT's strings, Google joins them bare. The strings of one record are one text (RFC 7208, 3.3). */
function parseText(data: string): string {
  if (!QUOTED.test(data)) return data;
  const strings = [...data.matchAll(/"((?:[^"\\]|\\.)*)"/gs)].map((match) => match[1] ?? '');
  return unescapeText(strings.join(''));
}

/** Decodes RFC 1035's `\"` and `\DDD` (a byte in decimal). The bytes are read as UTF-8. */
function unescapeText(text: string): string {
  const parts = text.split(/(\\\d{3}|\\.)/s).map((part) => {
    if (!part.startsWith('\\')) return Buffer.from(part, 'utf8');
    return /^\\\d{3}$/.test(part) ? Buffer.from([Number(part.slice(1)) & 0xff]) : Buffer.from(part.slice(1), 'utf8');
  });
  return Buffer.concat(parts).toString('utf8');
}

/** CAA (RFC 8659): Google sends text, Cloudflare the bytes in RFC 3597's generic form. */
function parseCaa(data: string): DnsFields['CAA'] | null {
  if (data.startsWith('\\#')) return parseGenericCaa(data);
  const match = /^(\d{1,3}) ([a-zA-Z0-9]+) (?:"((?:[^"\\]|\\.)*)"|(\S*))$/s.exec(data);
  if (!match) return null;
  return {
    flags: Number(match[1]),
    tag: (match[2] ?? '').toLowerCase(),
    value: unescapeText(match[3] ?? match[4] ?? ''),
  };
}

function parseGenericCaa(data: string): DnsFields['CAA'] | null {
  const match = /^\\# (\d{1,5}) ((?:[0-9a-fA-F]{2}\s*)+)$/.exec(data);
  const bytes = Buffer.from((match?.[2] ?? '').replace(/\s+/g, ''), 'hex');
  const [flags, tagLength] = bytes;
  if (!match || bytes.length !== Number(match[1]) || flags === undefined || tagLength === undefined) return null;
  const tag = bytes.subarray(2, 2 + tagLength).toString('ascii');
  if (tagLength === 0 || tag.length !== tagLength || !/^[a-zA-Z0-9]+$/.test(tag)) return null;
  return { flags, tag: tag.toLowerCase(), value: bytes.subarray(2 + tagLength).toString('utf8') };
}
