import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Encoded, encode, sendEncoded } from '../http/encodings.ts';
import { PAGE_HEADERS } from './security.ts';

/** A year, which is how long caches keep at most what never changes. */
const FOREVER = 'public, max-age=31536000, immutable';
/** May be kept, and is asked for anew each time: then it is often 304. */
const ASK_AGAIN = 'no-cache';

/** Sends a page, or 304 to who holds it already. */
export function sendPage(request: FastifyRequest, reply: FastifyReply, page: string | Encoded): void {
  sendEncoded(request, reply.headers(PAGE_HEADERS), typeof page === 'string' ? encodePage(page) : page, ASK_AGAIN);
}

/** A page ready to be sent many times. */
export function encodePage(text: string): Encoded {
  return encode(text, 'text/html; charset=utf-8');
}

/** Sends an asset, whose path is its version. */
export function sendAsset(request: FastifyRequest, reply: FastifyReply, asset: Encoded): void {
  sendEncoded(request, reply.headers(PAGE_HEADERS), asset, FOREVER);
}
