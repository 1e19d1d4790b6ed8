import type { Server } from 'node:http';
import type { FastifyHttpOptions } from 'fastify';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { answerBeforeRouting } from './errors.ts';
import { createClientErrorHandler } from './raw-errors.ts';
import { createRequestIds } from './request-id.ts';

/** Slack on top of the longest time that a request of ours may take. */
const SLACK_MS = 10_000;

/**
 * Every time-out and cap of the HTTP server, each with its reason; nothing is left to a default that a version may change.
 * Fastify itself logs nothing, and `request.log` is mute: a logger of its own makes it listen on every response, which costs 8 % of a
 * bare request. What is worth a line is logged by observe.ts and errors.ts, with `requestId`.
 */
export function serverOptions(config: Config, log: Logger): FastifyHttpOptions<Server> {
  const nextId = createRequestIds();
  return {
    http: {
      // Request line and headers: a payment header is about 1 KiB, a smart wallet's signature some more.
      maxHeaderSize: 16 * 1024,
      // Slow senders of headers hold a socket and nothing else; ten seconds is ample for 16 KiB.
      headersTimeout: 10_000,
      // How often the two time-outs for senders are looked at.
      connectionsCheckingInterval: 5_000,
      // Checked by our own first hook, so that the refusal has a body and an id.
      requireHostHeader: false,
    },
    // A whole request, body included: bodies are small.
    requestTimeout: 20_000,
    // A socket on which nothing moves; a paid answer may be silent while its handler runs and its settlement is awaited.
    connectionTimeout: Math.max(60_000, config.handlerTimeoutMs + config.settleWaitMs + SLACK_MS),
    // Longer than the usual 60 s of load balancers, so that they close first and never send into a closing socket.
    keepAliveTimeout: 72_000,
    // No route takes more than a payment payload with its requirements.
    bodyLimit: 64 * 1024,
    // The answers are small: a connection may carry any number.
    maxRequestsPerSocket: 0,
    // Idle connections are closed when the server stops; busy ones finish.
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    // HEAD is mounted where it is meant: a HEAD derived from GET would be a second way into a handler.
    exposeHeadRoutes: false,
    // Only proxies that the operator named may speak for a client; the address is then the last one none of them vouches for.
    trustProxy: config.trustedProxies.length > 0 ? [...config.trustedProxies] : false,
    requestIdHeader: false,
    genReqId: nextId,
    logger: false,
    frameworkErrors: answerBeforeRouting,
    clientErrorHandler: createClientErrorHandler({ log, nextId }),
    routerOptions: {
      // One path, one spelling: what the router would fold, a proxy's rules or a cache might not. (`;` starts no query either: the
      // router's default, of which the types know nothing here; a test holds it.)
      caseSensitive: true,
      ignoreDuplicateSlashes: false,
      ignoreTrailingSlash: false,
      // Ids in paths are hashes of at most 66 characters.
      maxParamLength: 128,
    },
  };
}
