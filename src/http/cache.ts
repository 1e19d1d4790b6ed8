import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../lib/clock.ts';
import { setNewest } from '../lib/set-newest.ts';

/** The most cached requests of one endpoint; answers have a few KiB. */
const MAX_ENTRIES = 1000;
/** The answer to a longer URL is cached under its parameters only, because a long URL is mostly padding. */
const MAX_KEPT_URL = 256;
/** Clients may cache an answer that changes with every block for this time. Then they revalidate it. */
const VERSIONED_MAX_AGE_MS = 1000;

/** The bytes of an answer with the headers that belong to them. */
export interface Answer {
  readonly body: string | Buffer;
  readonly contentType: string;
  /** Missing when the body is not compressed. */
  readonly contentEncoding?: 'br' | 'gzip';
  readonly etag: string;
  readonly cacheControl: string;
}

interface Entry extends Answer {
  readonly expiresAtMs: number;
  readonly version: number;
}

/** Prepares an answer from its JSON. The ETag is strong: a hash of the bytes. */
export function createAnswer(body: string, maxAgeSeconds: number): Answer {
  return {
    body,
    contentType: 'application/json; charset=utf-8',
    etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`,
    cacheControl: `public, max-age=${maxAgeSeconds}`,
  };
}

/** Sends an answer, or 304 when the client has the same bytes already. */
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

/** Whether an `If-None-Match` names the tag (RFC 9110, 13.1.2): a list or `*`; the comparison is weak. */
function holdsEtag(ifNoneMatch: string, etag: string): boolean {
  if (ifNoneMatch === etag || ifNoneMatch.trim() === '*') return true;
  return ifNoneMatch.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag);
}

/**
 * Caches one free endpoint's answers for `ttlMs` after they were computed. Concurrent requests share one computation.
 * An answer is cached under its raw URL (a hit parses nothing) and under its parsed parameters (a padded URL causes no new computation).
 * Errors are not cached. With `version`, an answer is also dropped when the version changes.
 */
export function createAnswerCache(clock: Clock, ttlMs: number, maxEntries = MAX_ENTRIES, version?: () => number) {
  const maxAgeSeconds = Math.floor(version ? Math.min(ttlMs, VERSIONED_MAX_AGE_MS) / 1000 : ttlMs / 1000);
  const versionNow = version ?? (() => 0);
  const byUrl = new Map<string, Entry>();
  const byParams = new Map<string, Entry>();
  const running = new Map<string, Promise<Entry>>();

  const fresh = (entry: Entry | undefined) =>
    entry && entry.expiresAtMs > clock.nowMs() && entry.version === versionNow() ? entry : undefined;

  async function compute(key: string, produce: () => Promise<string>): Promise<Entry> {
    // Read before the work, because the answer may lack data that is written meanwhile.
    const made = versionNow();
    const body = await produce();
    const answer = createAnswer(body, maxAgeSeconds);
    const entry = { ...answer, expiresAtMs: clock.nowMs() + ttlMs, version: made };
    setNewest(byParams, key, entry, maxEntries);
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
    /** The fresh cached answer to exactly this URL; undefined when there is none. */
    byUrl: (url: string): Answer | undefined => fresh(byUrl.get(url)),
    /** The answer to these parameters: the cached one, the one being computed, or a new one. */
    async answer(url: string, params: unknown, produce: () => Promise<string>): Promise<Answer> {
      const key = JSON.stringify(params);
      const entry = fresh(byParams.get(key)) ?? (await once(key, produce));
      if (url.length <= MAX_KEPT_URL) setNewest(byUrl, url, entry, maxEntries);
      return entry;
    },
  };
}
