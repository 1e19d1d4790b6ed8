import { z } from 'zod';
import { UpstreamFailed } from '../../errors.ts';
import { firstToAnswer } from '../client/fallback.ts';
import type { Dated, Upstream } from '../client/http.ts';
import { parseJson } from '../client/json.ts';
import { DNS_TYPES, type DnsFields, type DnsType, parseRecordData, plainName } from './dns-records.ts';

/** The JSON form of DNS over HTTPS that Cloudflare and Google use. Additional fields are ignored. */
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

/** The RFC 1035 response codes that are answers. */
const NOERROR = 0;
const SERVFAIL = 2;
const NXDOMAIN = 3;
/** RFC 8914's extended errors for a failed validation: 1 and 2 (unsupported algorithms) and 5 to 12. */
const BOGUS_REASONS = new Set([1, 2, 5, 6, 7, 8, 9, 10, 11, 12]);

/** One resolver: `url` answers `?name=…&type=…` in the JSON form. */
export interface Resolver {
  readonly name: string;
  readonly url: string;
  readonly upstream: Upstream;
}

/** The DNS answer about a name from one resolver. */
export interface DnsAnswer {
  /** SERVFAIL only means a failed validation. Any other server failure is an error. */
  readonly status: 'NOERROR' | 'NXDOMAIN' | 'SERVFAIL';
  /** Whether the asked name itself exists; null when validation failed. */
  readonly exists: boolean | null;
  /** True when every answer, or proof of absence, was signed and validated. */
  readonly validated: boolean;
  /** One list for each type that was asked. */
  readonly records: { readonly [T in DnsType]?: readonly (DnsFields[T] & { ttl: number })[] };
  /** The CNAME chain from the asked name, in order. */
  readonly aliases: readonly { name: string; target: string; ttl: number }[];
  readonly resolver: { readonly name: string; readonly url: string };
  /** When the oldest of its answers was read. */
  readonly retrievedAtMs: number;
}

/** Looks names up; `name` is ASCII without a trailing dot. */
export interface Dns {
  lookup(name: string, types: readonly DnsType[], signal?: AbortSignal): Promise<DnsAnswer>;
}

/**
 * DNS over HTTPS through the first resolver that answers for all of the types. One resolver gives the whole answer, so that it names one source.
 * The resolvers' JSON form is used because a buyer can read it when checking an answer at the origin.
 */
export function createDns(resolvers: readonly Resolver[]): Dns {
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
  const request = { url: `${url}?${new URLSearchParams(params)}`, accept: DNS_JSON, ...(signal && { signal }) };
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
