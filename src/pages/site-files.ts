import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { encodeWhenAsked, sendEncoded } from '../http/encodings.ts';
import { PAGE_HEADERS } from './security.ts';

const FOLDER = join(import.meta.dirname, 'assets');
/** A day, in seconds: these files have no version in their names. */
const CACHE = 'public, max-age=86400';

/** Crawlers may read pages and documents. Asking a priced route makes an answer or an invoice, which is not for them. */
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
    app.route({
      method: ['GET', 'HEAD'],
      url,
      handler: async (request, reply) => {
        sendEncoded(request, reply.headers(PAGE_HEADERS), await file.encoded(), CACHE);
        return reply;
      },
    });
  }
}
