import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { NotFound } from '../errors.ts';
import { type Encoded, encode, encodeWhenAsked, mountGet, sendEncoded } from '../http/answers.ts';
import type { Clock } from '../lib/clock.ts';
import { findAsset } from './shell.ts';

// How pages and their files are sent: with headers that protect them; pages are kept for a second, files for long.

const HTML_TYPE = 'text/html; charset=utf-8';

/** How long a page that is the same for all readers is kept. */
const KEEP_MS = 1000;

/** Makes a page at most once per second, and one at a time. After a failure the next request tries again. */
export function keepPage(clock: Clock, make: () => Promise<string>): () => Promise<Encoded> {
  let kept: { readonly until: number; readonly page: Promise<Encoded> } | null = null;
  return () => {
    const now = clock.nowMs();
    if (kept !== null && now < kept.until) return kept.page;
    const page = make().then(encodePage);
    const mine = { until: now + KEEP_MS, page };
    kept = mine;
    page.catch(() => {
      if (kept === mine) kept = null;
    });
    return page;
  };
}

/** Sends a page that depends on this request alone and is another document for programs. */
export function sendOnce(reply: FastifyReply, page: string): FastifyReply {
  const headers = { 'content-type': HTML_TYPE, 'cache-control': 'no-store', vary: 'accept' };
  return reply.headers({ ...PAGE_HEADERS, ...headers }).send(page);
}

export function encodePage(text: string): Encoded {
  return encode(text, HTML_TYPE);
}

/** Caches may keep a page but must revalidate it; the answer is then often 304. */
const ASK_AGAIN = 'no-cache';

/** Mounts a page for GET and HEAD. `make` may set a status. Its error is answered with a problem, as on any route. */
export function mountPage(
  app: FastifyInstance,
  url: string,
  make: (request: FastifyRequest, reply: FastifyReply) => Promise<string | Encoded> | string | Encoded,
): void {
  mountGet(app, url, async (request, reply) => {
    const page = await make(request, reply);
    sendEncoded(request, reply.headers(PAGE_HEADERS), typeof page === 'string' ? encodePage(page) : page, ASK_AGAIN);
    return reply;
  });
  if (url === '/') return;
  // People type the slash, and other pages link with it.
  mountGet(app, `${url}/`, (request, reply) => reply.redirect(`${url}${queryOf(request.raw.url ?? '')}`, 308));
}

function queryOf(target: string): string {
  const at = target.indexOf('?');
  return at < 0 ? '' : target.slice(at);
}

/** One year, the longest that caches use: an asset's path names its version. */
const FOREVER = 'public, max-age=31536000, immutable';

export function mountAssets(app: FastifyInstance): void {
  mountGet(app, '/assets/:file', async (request, reply) => {
    const { file } = request.params as { file: string };
    const asset = await findAsset(`/assets/${file}`);
    if (asset === undefined) throw new NotFound('There is no such asset; a page names those that are.');
    sendEncoded(request, reply.headers(PAGE_HEADERS), asset, FOREVER);
    return reply;
  });
}

const FOLDER = join(import.meta.dirname, 'assets');
/** A day, in seconds: these files have no version in their names. */
const CACHE = 'public, max-age=86400';

/** Crawlers may read pages and documents. A priced route would make an answer or an invoice for them. */
const ROBOTS = `User-agent: *
Disallow: /v1/paid/
Disallow: /v1/lightning/
Disallow: /v1/mpp/
Disallow: /v1/payments/
Disallow: /facilitator/
Disallow: /mcp
`;

/** Mounts the files that browsers, crawlers and link previews ask for by name. */
export function mountSiteFiles(app: FastifyInstance): void {
  const files: readonly [url: string, bytes: Buffer, contentType: string][] = [
    ['/favicon.ico', readFileSync(join(FOLDER, 'favicon.ico')), 'image/x-icon'],
    ['/preview.png', readFileSync(join(FOLDER, 'preview.png')), 'image/png'],
    ['/robots.txt', Buffer.from(ROBOTS), 'text/plain; charset=utf-8'],
  ];
  for (const [url, bytes, contentType] of files) {
    const file = encodeWhenAsked(bytes, contentType);
    mountGet(app, url, async (request, reply) => {
      sendEncoded(request, reply.headers(PAGE_HEADERS), await file.encoded(), CACHE);
      return reply;
    });
  }
}

/**
 * No inline script or style is allowed, so a third party's text could run nothing even if it became markup. Charts set
 * styles through the DOM, which the policy does not cover.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** The headers of every page and asset, besides those of every answer. */
const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': POLICY,
  // Other sites do not learn which page a reader came from.
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
};
