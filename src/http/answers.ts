import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, brotliCompressSync, constants, gzip, gzipSync } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteHandlerMethod } from 'fastify';
import type { Clock } from '../lib/clock.ts';
import { boundedMap } from '../lib/limits/count.ts';
import { makeOnce } from '../lib/tasks.ts';

// How an answer of 200 is kept, encoded and sent. A free endpoint's answers are cached, and concurrent requests share
// one computation. Documents, pages and assets are sent in the best encoding that the client accepts.

/** Mounts a handler for GET and HEAD. */
export function mountGet(app: FastifyInstance, url: string, handler: RouteHandlerMethod): void {
  app.route({ method: ['GET', 'HEAD'], url, handler });
}

interface Answer {
  readonly body: string | Buffer;
  readonly contentType: string;
  readonly contentEncoding?: 'br' | 'gzip';
  readonly etag: string;
  readonly cacheControl: string;
}

/** The ETag is strong: a hash of the bytes. */
export function createAnswer(body: string, maxAgeSeconds: number): Answer {
  return {
    body,
    contentType: 'application/json; charset=utf-8',
    etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`,
    cacheControl: `public, max-age=${maxAgeSeconds}`,
  };
}

export function sendAnswer(request: FastifyRequest, reply: FastifyReply, answer: Answer): void {
  reply.header('etag', answer.etag);
  reply.header('cache-control', answer.cacheControl);
  const held = request.headers['if-none-match'];
  if (held !== undefined && holdsEtag(held, answer.etag)) {
    reply.code(304).send();
    return;
  }
  if (answer.contentEncoding) reply.header('content-encoding', answer.contentEncoding);
  reply.header('content-type', answer.contentType);
  reply.send(answer.body);
}

/** Holds a list or `*`; the comparison is weak (RFC 9110, 13.1.2). */
function holdsEtag(ifNoneMatch: string, etag: string): boolean {
  if (ifNoneMatch === etag || ifNoneMatch.trim() === '*') return true;
  return ifNoneMatch.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag);
}

/** The most cached requests of one endpoint; answers have a few KiB. */
const MAX_ENTRIES = 1000;
/** A longer URL is mostly padding: its answer is cached under its parameters alone. */
const MAX_KEPT_URL = 256;
/** Clients may cache an answer that changes with every block for so long. */
const VERSIONED_MAX_AGE_MS = 1000;

interface Entry extends Answer {
  readonly expiresAtMs: number;
  readonly version: number;
}

/**
 * Caches one free endpoint's answers for `ttlMs`, under their raw URL (a hit parses nothing) and their parameters (a
 * padded URL computes nothing). Errors are not cached. With `version`, an answer is also dropped when that changes.
 */
export function createAnswerCache(clock: Clock, ttlMs: number, maxEntries = MAX_ENTRIES, version?: () => number) {
  const maxAgeSeconds = Math.floor(version ? Math.min(ttlMs, VERSIONED_MAX_AGE_MS) / 1000 : ttlMs / 1000);
  const versionNow = version ?? (() => 0);
  const byUrl = boundedMap<string, Entry>(maxEntries);
  const byParams = boundedMap<string, Entry>(maxEntries);
  const running = new Map<string, Promise<Entry>>();

  const fresh = (entry: Entry | undefined) =>
    entry && entry.expiresAtMs > clock.nowMs() && entry.version === versionNow() ? entry : undefined;

  async function compute(key: string, produce: () => Promise<string>): Promise<Entry> {
    // Read before the work: the answer may lack data that is written meanwhile.
    const made = versionNow();
    const body = await produce();
    const answer = createAnswer(body, maxAgeSeconds);
    const entry = { ...answer, expiresAtMs: clock.nowMs() + ttlMs, version: made };
    byParams.set(key, entry);
    return entry;
  }

  function once(key: string, produce: () => Promise<string>): Promise<Entry> {
    const known = running.get(key);
    if (known) return known;
    const started = compute(key, produce).finally(() => running.delete(key));
    running.set(key, started);
    return started;
  }

  return {
    byUrl: (url: string): Answer | undefined => fresh(byUrl.peek(url)),
    /** The cached answer, the one being computed, or a new one. */
    async answer(url: string, params: unknown, produce: () => Promise<string>): Promise<Answer> {
      const key = JSON.stringify(params);
      const entry = fresh(byParams.peek(key)) ?? (await once(key, produce));
      if (url.length <= MAX_KEPT_URL) byUrl.set(url, entry);
      return entry;
    },
  };
}

const ENCODINGS = ['br', 'gzip', 'identity'] as const;
type Encoding = (typeof ENCODINGS)[number];

export interface Encoded {
  readonly contentType: string;
  readonly forms: Readonly<Record<Encoding, { readonly bytes: Buffer; readonly etag: string }>>;
  /** The hash of the text itself, for file names. */
  readonly hash: string;
}

export interface Encodable {
  readonly hash: string;
  encoded(): Promise<Encoded>;
}

/** Compresses a text that changes soon, at once and with low quality. */
export function encode(text: string, contentType: string): Encoded {
  const bytes = Buffer.from(text);
  const br = brotliCompressSync(bytes, brotliOptions('once', bytes));
  return withForms(bytes, hashOf(bytes), contentType, br, gzipSync(bytes));
}

/** Compresses a text that is sent many times, at its first request and off the event loop: no start waits for it. */
export function encodeWhenAsked(bytes: Buffer, contentType: string): Encodable {
  const hash = hashOf(bytes);
  const compress = async () => {
    const br = promisify(brotliCompress)(bytes, brotliOptions('kept', bytes));
    return withForms(bytes, hash, contentType, ...(await Promise.all([br, promisify(gzip)(bytes)])));
  };
  return { hash, encoded: makeOnce(compress) };
}

function hashOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('base64url').slice(0, 16);
}

/** Brotli's quality: 9 is within a tenth of the best size and twenty times as fast; 4 costs as much as gzip. */
const BROTLI = { kept: 9, once: 4 };

function brotliOptions(effort: keyof typeof BROTLI, { length }: Buffer) {
  return { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI[effort], [constants.BROTLI_PARAM_SIZE_HINT]: length } };
}

function withForms(bytes: Buffer, hash: string, contentType: string, br: Buffer, gz: Buffer): Encoded {
  return {
    contentType,
    hash,
    forms: {
      br: { bytes: br, etag: `"${hash}-br"` },
      gzip: { bytes: gz, etag: `"${hash}-gz"` },
      identity: { bytes, etag: `"${hash}"` },
    },
  };
}

/** The best one that the header allows (RFC 9110, 12.5.3); identity when it names none of ours. */
export function chooseEncoding(acceptEncoding: string | undefined): Encoding {
  const accepted = new Set(
    (acceptEncoding ?? '').split(',').flatMap((item) => {
      const [name = '', ...params] = item.split(';').map((part) => part.trim().toLowerCase());
      return params.some((param) => /^q=0(\.0{0,3})?$/.test(param)) ? [] : [name];
    }),
  );
  return ENCODINGS.find((encoding) => accepted.has(encoding)) ?? 'identity';
}

/** Sends the encoding that the client accepts, or 304 when the client has the text already. */
export function sendEncoded(
  request: FastifyRequest,
  reply: FastifyReply,
  encoded: Encoded,
  cacheControl: string,
): void {
  const encoding = chooseEncoding(String(request.headers['accept-encoding'] ?? ''));
  const { bytes, etag } = encoded.forms[encoding];
  reply.header('vary', 'accept-encoding');
  sendAnswer(request, reply, {
    body: bytes,
    contentType: encoded.contentType,
    etag,
    cacheControl,
    ...(encoding !== 'identity' && { contentEncoding: encoding }),
  });
}

/** Named by everyone who prefers it, in few words: a program's `Accept`, or a padded one, is read no further. */
const [HTML, MAX_ACCEPT] = [/text\/html/i, 1024];

/** Whether `text/html` is preferred to JSON, as browsers do. A client that accepts anything as gladly gets JSON. */
export function acceptsHtml({ method, headers }: Pick<FastifyRequest, 'method' | 'headers'>): boolean {
  const { accept = '' } = headers;
  if ((method !== 'GET' && method !== 'HEAD') || accept.length > MAX_ACCEPT || !HTML.test(accept)) return false;
  const weights = new Map(accept.split(',').map(readRange));
  const html = weights.get('text/html') ?? 0;
  const json = weights.get('application/json') ?? weights.get('application/*') ?? weights.get('*/*') ?? 0;
  return html > Math.max(json, weights.get('application/problem+json') ?? 0);
}

/** RFC 9110, 12.4.2. */
function readRange(item: string): [type: string, weight: number] {
  const [type = '', ...params] = item.split(';').map((part) => part.trim().toLowerCase());
  const weight = params.find((param) => param.startsWith('q='))?.slice(2);
  return [type, weight === undefined ? 1 : Number(weight) || 0];
}
