import { isIPv4, isIPv6 } from 'node:net';

/** The record types that are sold, with their numbers (IANA, "DNS Parameters"). */
export const DNS_TYPES = { A: 1, AAAA: 28, CNAME: 5, MX: 15, TXT: 16, NS: 2, SOA: 6, CAA: 257 } as const;

export type DnsType = keyof typeof DNS_TYPES;

/** A record's data as fields, without `ttl`. Names have no trailing dot, except the root itself. */
export interface DnsFields {
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

type Parsers = { [T in DnsType]: (data: string) => DnsFields[T] | null };

const PARSERS: Parsers = {
  A: (data) => (isIPv4(data) ? { address: data } : null),
  AAAA: (data) => (isIPv6(data) ? { address: data } : null),
  CNAME: (data) => named(data, (target) => ({ target })),
  MX: parseMx,
  TXT: (data) => ({ text: parseText(data) }),
  NS: (data) => named(data, (nameServer) => ({ nameServer })),
  SOA: parseSoa,
  CAA: parseCaa,
};

/** The fields of one record's data in the resolvers' JSON form, or null when it is not of that form. */
export function parseRecordData<T extends DnsType>(type: T, data: string): DnsFields[T] | null {
  return PARSERS[type](data);
}

/** A name without its trailing dot, in lower case; the root stays ".", so that a null MX (RFC 7505) is not an empty string. */
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

/** TXT data: Cloudflare quotes its strings, Google joins them bare. The strings of one record are one text (RFC 7208, 3.3). */
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
