import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { HTTPVersion, Instance } from 'find-my-way';
import createRouter from 'find-my-way';
import type { Logger } from 'pino';
import { AppError } from '../errors.ts';
import { hasOwnAddress } from '../lib/limits/count.ts';
import { CORS_HEADERS, NOSNIFF, pathOf } from './problems.ts';
import { ROUTER_OPTIONS } from './server-options.ts';

// What every request passes before its route: id, common headers, and the refusal of what is not acceptable.

/** A longer target is refused before routes, limits and gates. */
const MAX_URL_LENGTH = 8192;

const TOO_LONG = new AppError(414, 'url_too_long', `The URL may have at most ${MAX_URL_LENGTH} characters.`);
const NO_HOST = new AppError(400, 'host_missing', 'HTTP/1.1 requests carry a Host header (RFC 9112, section 3.2).');

const ALLOW_ORIGIN = CORS_HEADERS['access-control-allow-origin'];
const EXPOSE = CORS_HEADERS['access-control-expose-headers'];
const TYPE_OPTIONS = NOSNIFF['x-content-type-options'];

/** These have no CORS: no page of another origin may read how the service does. */
const CLOSED_TO_PAGES: ReadonlySet<string> = new Set(['/metrics', '/readyz']);

declare module 'fastify' {
  interface FastifyRequest {
    /** On the monotonic clock. */
    startedMs: number;
  }
}

/**
 * The only hook of all routes, because each hook costs time. It sets the request id and the common headers. It answers
 * unacceptable requests and preflights before limits and gates, and with its body unread what no route answers.
 * The Host check is Node's own, done here because Node would answer without id and body.
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
    // A path has several spellings (`/metric%73`). A preflight finds no route of its own.
    const isClosed = CLOSED_TO_PAGES.has(isPreflight ? pathOf(raw.url ?? '') : (request.routeOptions.url ?? ''));
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
  // Without a route for OPTIONS the not-found handler would count it.
  app.options('*', (_request, reply) => reply.code(204).send());
}

function answerPreflight(isClosed: boolean, reply: FastifyReply): void {
  if (!isClosed) reply.headers(PREFLIGHT_HEADERS);
  reply.code(204).send();
}

/** Headers of a page's script. Stock x402 clients send Access-Control-Expose-Headers in the request. */
const ALLOWED = [
  'Content-Type',
  'PAYMENT-SIGNATURE',
  'X-PAYMENT',
  'Authorization',
  // MPP clients say in it what they can pay with.
  'Accept-Payment',
  'Access-Control-Expose-Headers',
  'If-None-Match',
  'Mcp-Protocol-Version',
  'Mcp-Session-Id',
  'Last-Event-ID',
].join(', ');

/** Every OPTIONS counts as a preflight and passes no gate: a browser cannot pay with it. */
const PREFLIGHT_HEADERS = {
  'access-control-allow-methods': 'GET, HEAD, POST',
  'access-control-allow-headers': ALLOWED,
  'access-control-max-age': '86400',
};

const UNNAMED =
  'a request came through a proxy that does not name the client: name the proxy in TRUSTED_PROXIES and let it send ' +
  'X-Forwarded-For. Until then all of its clients share one rate limit, and a paid reply is fetched again by its ' +
  'payment identifier alone';

/** Warns once of a forwarding header that is not trusted: of a proxy that is not named, or written by the peer. */
function watchProxies(log: Logger): (request: FastifyRequest) => void {
  let isWarned = false;
  // Each peer address is checked once: behind a trusted proxy every request has the header.
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

/** Methods in the order in which they were mounted. */
interface Path {
  readonly url: string;
  readonly methods: string[];
}

/**
 * Watches the routes that are mounted from now on, and refuses what none answers: 405 with `Allow` where the path has
 * other methods, null where it has none. `onRefused` is told the path's pattern. The router knows a path under its own
 * methods only: so a second one, made for the first such request, has all patterns. A route for each of the 33 methods
 * that Node parses took a tenth of a start.
 */
export function createMethodRefusals(
  app: FastifyInstance,
  onRefused: (request: FastifyRequest, status: 405, route: string) => void,
): (request: FastifyRequest) => AppError | null {
  const paths = new Map<string, Path>();
  app.addHook('onRoute', ({ url, method }) => {
    // The guard answers OPTIONS.
    const methods = [method].flat().filter((name) => name !== 'OPTIONS');
    if (methods.length === 0) return;
    const path = paths.get(url) ?? { url, methods: [] };
    path.methods.push(...methods);
    paths.set(url, path);
  });
  let router: Instance<HTTPVersion.V1> | undefined;

  return (request) => {
    router ??= routerOf(paths.values());
    const path = router.find('GET', request.raw.url ?? '')?.store as Path | undefined;
    if (path === undefined) return null;
    onRefused(request, 405, path.url);
    const allow = [...path.methods, 'OPTIONS'].join(', ');
    const detail = `This path does not answer ${request.method}; it answers ${allow}.`;
    return new AppError(405, 'method_not_allowed', detail, { headers: { allow } });
  };
}

function routerOf(paths: Iterable<Path>): Instance<HTTPVersion.V1> {
  const router = createRouter(ROUTER_OPTIONS);
  for (const path of paths) router.on('GET', path.url, () => {}, path);
  return router;
}
