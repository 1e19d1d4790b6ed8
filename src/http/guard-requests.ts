import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { AppError } from '../errors.ts';
import { CORS_HEADERS, isClosedToPages, NOSNIFF, PREFLIGHT_HEADERS } from './cors.ts';
import { pathOf } from './problem.ts';
import { watchProxies } from './watch-proxies.ts';

/** Longer request targets are refused before routes, limits and gates. */
const MAX_URL_LENGTH = 8192;

const TOO_LONG = new AppError(414, 'url_too_long', `The URL may have at most ${MAX_URL_LENGTH} characters.`);
const NO_HOST = new AppError(400, 'host_missing', 'HTTP/1.1 requests carry a Host header (RFC 9112, section 3.2).');

const ALLOW_ORIGIN = CORS_HEADERS['access-control-allow-origin'];
const EXPOSE = CORS_HEADERS['access-control-expose-headers'];
const TYPE_OPTIONS = NOSNIFF['x-content-type-options'];

declare module 'fastify' {
  interface FastifyRequest {
    /** When the request arrived, on the monotonic clock. */
    startedMs: number;
  }
}

/**
 * The first hook of every request, and the only one for all routes, because each hook costs time. It sets the request
 * id and the common headers on every answer. Unacceptable requests and preflights are answered here, before limits and
 * gates. So is a request that no route answers: `refusalOf` says whether its method is the reason. Its body is not read
 * then. The Host check is Node's own, done here because Node would answer without id and body.
 */
export function guardRequests(
  app: FastifyInstance,
  log: Logger,
  refusalOf: (request: FastifyRequest) => AppError | null,
): void {
  const watch = watchProxies(log);
  app.decorateRequest('startedMs', 0);
  app.addHook('onRequest', (request, reply, done) => {
    request.startedMs = performance.now();
    reply.header('x-request-id', request.id);
    reply.header('x-content-type-options', TYPE_OPTIONS);
    const { raw } = request;
    const { headers } = raw;
    const isPreflight = raw.method === 'OPTIONS';
    // The found route, because a path has several spellings (`/metric%73`). A preflight finds no route of its own.
    const isClosed = isClosedToPages(isPreflight ? pathOf(raw.url ?? '') : (request.routeOptions.url ?? ''));
    if (!isClosed) {
      reply.header('access-control-allow-origin', ALLOW_ORIGIN);
      reply.header('access-control-expose-headers', EXPOSE);
    }
    if (headers['x-forwarded-for'] !== undefined || headers.forwarded !== undefined) watch(request);
    if ((raw.url?.length ?? 0) > MAX_URL_LENGTH) return done(TOO_LONG);
    if (headers.host === undefined && raw.httpVersionMinor === 1) return done(NO_HOST);
    if (isPreflight) return answerPreflight(isClosed, reply);
    if (request.is404) return done(refusalOf(request) ?? undefined);
    done();
  });
  // Without a route for OPTIONS the not-found handler would count it. The hook above answers it before this handler.
  app.options('*', (_request, reply) => reply.code(204).send());
}

function answerPreflight(isClosed: boolean, reply: FastifyReply): void {
  if (!isClosed) reply.headers(PREFLIGHT_HEADERS);
  reply.code(204).send();
}
