import type { FastifyReply, FastifyRequest } from 'fastify';
import { holdsEtag } from '../http/cache.ts';
import { chooseEncoding, type Encoded, encode } from './encodings.ts';
import { PAGE_HEADERS } from './security.ts';

/** A year, which is how long caches keep at most what never changes. */
const FOREVER = 'public, max-age=31536000, immutable';
/** May be kept, and is asked for anew each time: then it is often 304. */
const ASK_AGAIN = 'no-cache';

/** Sends a page, or 304 to who holds it already. */
export function sendPage(request: FastifyRequest, reply: FastifyReply, page: string | Encoded): void {
  send(request, reply, typeof page === 'string' ? encodePage(page) : page, ASK_AGAIN);
}

/** A page ready to be sent many times. */
export function encodePage(text: string): Encoded {
  return encode(text, 'text/html; charset=utf-8', 'once');
}

/** Sends an asset, whose path is its version. */
export function sendAsset(request: FastifyRequest, reply: FastifyReply, asset: Encoded): void {
  send(request, reply, asset, FOREVER);
}

function send(request: FastifyRequest, reply: FastifyReply, encoded: Encoded, cacheControl: string): void {
  const encoding = chooseEncoding(String(request.headers['accept-encoding'] ?? ''));
  const { bytes, etag } = encoded.forms[encoding];
  reply.headers({ ...PAGE_HEADERS, 'cache-control': cacheControl, vary: 'accept-encoding', etag });
  const held = request.headers['if-none-match'];
  if (held !== undefined && holdsEtag(held, etag)) {
    reply.code(304).send();
    return;
  }
  if (encoding !== 'identity') reply.header('content-encoding', encoding);
  reply.header('content-type', encoded.contentType).send(bytes);
}
