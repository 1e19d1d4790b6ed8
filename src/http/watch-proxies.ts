import type { FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { hasOwnAddress } from '../lib/client-identity.ts';

const UNTOLD =
  'a request came through a proxy that does not tell who sent it: name the proxy in TRUSTED_PROXIES and let it send X-Forwarded-For. ' +
  'Until then all of its clients share one rate limit, and a paid reply is fetched again by its payment identifier alone';

/**
 * Makes what looks at requests that name their client in a forwarding header, and warns once when that is not believed. Either the operator has a proxy
 * in front that TRUSTED_PROXIES does not name, or the client wrote the header itself; the peer's address in the warning tells which.
 */
export function watchProxies(log: Logger): (request: FastifyRequest) => void {
  let isTold = false;
  // Behind a trusted proxy every request has the header: its address is judged once, not each time.
  let trusted = '';
  return (request) => {
    const peer = request.raw.socket.remoteAddress ?? '';
    if (isTold || peer === trusted) return;
    if (hasOwnAddress(request)) {
      trusted = peer;
      return;
    }
    isTold = true;
    log.warn({ peer }, UNTOLD);
  };
}
