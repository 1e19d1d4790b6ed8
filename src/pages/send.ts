import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Encoded, encode, sendEncoded } from '../http/encodings.ts';
import { PAGE_HEADERS } from './security.ts';

/** One year, the longest time that caches use. */
const FOREVER = 'public, max-age=31536000, immutable';
/** Caches may keep it but must revalidate it; the answer is then often 304. */
const ASK_AGAIN = 'no-cache';

/** Sends a page, or 304 when the client has it already. */
export function sendPage(request: FastifyRequest, reply: FastifyReply, page: string | Encoded): void {
  sendEncoded(request, reply.headers(PAGE_HEADERS), typeof page === 'string' ? encodePage(page) : page, ASK_AGAIN);
}

/** Sends a page that depends on this request alone and is another document for programs. */
export function sendOnce(reply: FastifyReply, page: string): FastifyReply {
  const headers = { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store', vary: 'accept' };
  return reply.headers({ ...PAGE_HEADERS, ...headers }).send(page);
}

/** Encodes a page once, to be sent many times. */
export function encodePage(text: string): Encoded {
  return encode(text, 'text/html; charset=utf-8');
}

/** Sends an asset. Its path names its version, so it may be cached for ever. */
export function sendAsset(request: FastifyRequest, reply: FastifyReply, asset: Encoded): void {
  sendEncoded(request, reply.headers(PAGE_HEADERS), asset, FOREVER);
}
