import type { FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { hasOwnAddress } from '../lib/limits/client.ts';

const UNNAMED =
  'a request came through a proxy that does not name the client: name the proxy in TRUSTED_PROXIES and let it send X-Forwarded-For. ' +
  'Until then all of its clients share one rate limit, and a paid reply is fetched again by its payment identifier alone';

/**
 * Returns a check for requests with `X-Forwarded-For` or `Forwarded`. It warns once when that header is not trusted: TRUSTED_PROXIES does not name
 * the proxy, or a client wrote the header. The peer's address in the warning shows which.
 */
export function watchProxies(log: Logger): (request: FastifyRequest) => void {
  let isWarned = false;
  // Behind a trusted proxy every request has the header, so each peer address is checked once.
  let trusted = '';
  return (request) => {
    const peer = request.raw.socket.remoteAddress ?? '';
    if (isWarned || peer === trusted) return;
    if (hasOwnAddress(request)) {
      trusted = peer;
      return;
    }
    isWarned = true;
    log.warn({ peer }, UNNAMED);
  };
}
