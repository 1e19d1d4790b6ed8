import { randomBytes } from 'node:crypto';
import type { Server } from 'node:http';
import type { FastifyHttpOptions } from 'fastify';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { answerBeforeRouting, createClientErrorHandler } from './problems.ts';

export const ROUTER_OPTIONS = {
  // Proxies and caches may treat another spelling differently. `;` starts no query: a test checks the router's default.
  caseSensitive: true,
  ignoreDuplicateSlashes: false,
  ignoreTrailingSlash: false,
  // Ids in paths are hashes of at most 66 characters.
  maxParamLength: 128,
} as const;

/** This is added to the longest time that a request may take. */
const SLACK_MS = 10_000;

/**
 * Every time-out and limit, so that none is a default that may change. Fastify logs nothing: with a logger it would
 * listen on every response, which costs 8 % of a bare request. metrics.ts and problems.ts write the log lines.
 */
export function serverOptions(config: Config, log: Logger): FastifyHttpOptions<Server> {
  const nextId = createRequestIds();
  return {
    http: {
      // A payment header is about 1 KiB, a smart wallet's signature some more.
      maxHeaderSize: 16 * 1024,
      // A slow sender of headers only holds a socket.
      headersTimeout: 10_000,
      connectionsCheckingInterval: 5_000,
      // Our own first hook checks it, so that the refusal has a body and an id.
      requireHostHeader: false,
    },
    requestTimeout: 20_000,
    // A paid request may be idle while its handler runs and its settlement is awaited.
    connectionTimeout: Math.max(60_000, config.handlerTimeoutMs + config.settleWaitMs + SLACK_MS),
    // Longer than the usual 60 s of load balancers, so that they never send into a closing socket.
    keepAliveTimeout: 72_000,
    // The largest accepted body is a payment payload with its requirements.
    bodyLimit: 64 * 1024,
    maxRequestsPerSocket: 0,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    // HEAD is registered where it is supported. One derived from GET would be a second way into a handler.
    exposeHeadRoutes: false,
    // Only named proxies may report a client's address: it is then the last one that is not a trusted proxy's.
    trustProxy: config.trustedProxies.length > 0 ? [...config.trustedProxies] : false,
    requestIdHeader: false,
    genReqId: nextId,
    logger: false,
    // Routes parse their parameters themselves.
    schemaController: NO_SCHEMAS,
    frameworkErrors: answerBeforeRouting,
    clientErrorHandler: createClientErrorHandler(log, nextId),
    routerOptions: { ...ROUTER_OPTIONS },
  };
}

/** For instances without schemas or with their own compilers: Fastify's load Ajv, a tenth of a start. */
export const NO_SCHEMAS = { compilersFactory: { buildValidator: refuse, buildSerializer: refuse } };

function refuse(): never {
  throw new Error('a route has a schema, and no compiler for it');
}

/** Ids are unguessable and unique over restarts. A client's own would let it forge another's log entries. */
export function createRequestIds(): () => string {
  const prefix = randomBytes(9).toString('base64url');
  let count = 0;
  return () => {
    count += 1;
    return `${prefix}-${count.toString(36)}`;
  };
}
