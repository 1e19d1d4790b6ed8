import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { AppError, NotFound } from '../errors.ts';

// Every failure becomes a problem document (RFC 9457), or a page for a browser. An error without a name of ours becomes
// a named one: the framework's own, or a bug, which is a 500. What the HTTP parser refuses is answered as raw bytes.

const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';

const MAX_INSTANCE = 256;

/** `instance` has no query, because answers may be logged. `extra` never replaces a standard member. */
function renderProblem(error: AppError, id: string, target: string, extra: Record<string, unknown> = {}): string {
  const problem = {
    type: 'about:blank',
    title: STATUS_CODES[error.status] ?? 'Error',
    status: error.status,
    detail: error.message,
    instance: pathOf(target).slice(0, MAX_INSTANCE),
    code: error.code,
    charged: error.charged,
    requestId: id,
    ...(error.errors ? { errors: error.errors } : {}),
  };
  return JSON.stringify({ ...extra, ...error.members, ...problem });
}

/** No cache keeps a problem. `Retry-After` is in whole seconds. */
function problemHeaders(error: AppError): Record<string, string> {
  const { retryAfterSeconds } = error;
  return {
    ...error.headers,
    'content-type': PROBLEM_TYPE,
    'cache-control': 'no-store',
    ...(retryAfterSeconds === undefined ? {} : { 'retry-after': String(Math.max(1, Math.ceil(retryAfterSeconds))) }),
  };
}

export function pathOf(target: string): string {
  const query = target.indexOf('?');
  return query < 0 ? target : target.slice(0, query);
}

/** False: the request asks for no page, and the caller answers with a problem. */
export type ProblemPage = (request: FastifyRequest, reply: FastifyReply, error: AppError) => boolean;

/**
 * `onUnmatched` is told of answers that belong to no route, which the counters of routes do not count. `adviceOn` says
 * what a client that asked for such a target can do. `page` may answer a browser instead.
 */
export function installErrorHandlers(
  app: FastifyInstance,
  log: Logger,
  onUnmatched: (request: FastifyRequest, status: number) => void,
  adviceOn: (target: string) => string,
  page: ProblemPage = () => false,
): void {
  app.setErrorHandler((error, request, reply) => {
    const problem = asAppError(error);
    if (problem.status >= 500) logFailure(log, request, problem);
    if (!page(request, reply, problem)) sendProblem(request, reply, problem);
  });
  app.setNotFoundHandler((request, reply) => {
    onUnmatched(request, 404);
    const problem = new NotFound(adviceOn(request.raw.url ?? ''), 'no_such_route');
    if (!page(request, reply, problem)) sendProblem(request, reply, problem);
  });
}

/** Logs a bug with its stack, and a named failure with its cause. An expected failure is no warning. */
function logFailure(log: Logger, request: FastifyRequest, problem: AppError): void {
  const where = { requestId: request.id, method: request.method, route: request.routeOptions.url, code: problem.code };
  const [err, detail, level] = [problem.cause, problem.message, problem.isExpected ? 'info' : 'warn'] as const;
  if (problem.code === 'internal') log.error({ ...where, err }, 'a request failed on a bug');
  else log[level]({ ...where, detail, err }, 'a request failed');
}

export function sendProblem(
  request: FastifyRequest,
  reply: FastifyReply,
  error: AppError,
  extra: Record<string, unknown> = {},
): void {
  // A handler that failed late may have set them for its own answer.
  for (const name of ['etag', 'content-length', 'last-modified']) reply.removeHeader(name);
  reply
    .code(error.status)
    .headers(problemHeaders(error))
    .send(renderProblem(error, request.id, request.raw.url ?? '', extra));
}

/** A bug becomes a 500 without its cause, because its message may tell internals; the log has it. */
export function asAppError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  const { code, statusCode } = fieldsOf(error);
  const known = KNOWN[code];
  if (known) return new AppError(...known);
  // Fastify gives a truncated body this status.
  if (code === 'ECONNRESET' && statusCode === 400)
    return new AppError(400, 'bad_request', 'The body ended before its announced length.');
  const fromFramework = code.startsWith('FST_') && statusCode >= 400 && statusCode < 500;
  if (fromFramework) return new AppError(statusCode, 'bad_request', 'The request cannot be read.');
  return new AppError(500, 'internal', INTERNAL, { cause: error });
}

/** A client can cause these. Fastify's own messages change with versions. */
const KNOWN: Record<string, readonly [status: number, code: string, detail: string]> = {
  FST_ERR_BAD_URL: [400, 'malformed_url', 'The URL is not valid: check its percent-encoding.'],
  FST_ERR_MAX_PARAM_LENGTH: [414, 'url_too_long', 'A segment of the path is too long.'],
  FST_ERR_CTP_BODY_TOO_LARGE: [413, 'body_too_large', 'The request body may have at most 64 KiB.'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [415, 'unsupported_media_type', 'Send the body as application/json.'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: [400, 'invalid_content_length', 'Content-Length does not match the body.'],
  FST_ERR_CTP_EMPTY_JSON_BODY: [400, 'invalid_json', 'The body is empty; send a JSON object.'],
  FST_ERR_CTP_INVALID_JSON_BODY: [400, 'invalid_json', 'The body is not valid JSON; send a JSON object.'],
};

const INTERNAL =
  'This is a fault of the service, logged under the request id. `charged` says whether money moved; the same request ' +
  'may succeed later.';

function fieldsOf(error: unknown): { code: string; statusCode: number } {
  if (typeof error !== 'object' || error === null) return { code: '', statusCode: 0 };
  const { code, statusCode } = error as { code?: unknown; statusCode?: unknown };
  return { code: typeof code === 'string' ? code : '', statusCode: typeof statusCode === 'number' ? statusCode : 0 };
}

/** A URL that cannot be decoded fails before routing and all hooks: the common headers are set here. */
export function answerBeforeRouting(error: Error, request: FastifyRequest, reply: FastifyReply): void {
  reply.headers({ 'x-request-id': request.id, ...NOSNIFF, ...CORS_HEADERS });
  sendProblem(request, reply, asAppError(error));
}

/** Any other code means that the request is not HTTP. */
const KNOWN_RAW: Record<string, readonly [status: number, code: string, detail: string]> = {
  HPE_HEADER_OVERFLOW: [431, 'headers_too_large', 'Request line and headers together may have at most 16 KiB.'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'request_timeout', 'The request did not arrive in time.'],
};

/**
 * Answers what the HTTP parser refuses, and closes the connection. It writes nothing while an earlier request of the
 * connection is unanswered: the client would take the refusal for that answer, which may be a paid one.
 */
export function createClientErrorHandler(log: Logger, nextId: () => string) {
  return (error: Error & { code?: string }, socket: Socket): void => {
    const pending = (socket as Socket & { _httpMessage?: unknown })._httpMessage;
    if (error.code === 'ECONNRESET' || !socket.writable || pending) {
      socket.destroy();
      return;
    }
    const id = nextId();
    const known = KNOWN_RAW[error.code ?? ''] ?? [400, 'malformed_request', 'This is not a readable HTTP request.'];
    const problem = new AppError(...known);
    log.debug({ requestId: id, status: problem.status, parser: error.code }, 'a connection sent no readable request');
    socket.end(rawAnswer(problem, id));
  };
}

/** The bytes of HTTP/1.1, for a connection that is closed with them. */
export function rawAnswer(problem: AppError, id: string): string {
  const body = renderProblem(problem, id, '');
  const headers = {
    ...problemHeaders(problem),
    ...NOSNIFF,
    ...CORS_HEADERS,
    'x-request-id': id,
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n${lines.join('')}\r\n${body}`;
}

/** Without them a buyer in a browser could not see the terms of payment. */
const EXPOSED = [
  'PAYMENT-REQUIRED',
  'PAYMENT-RESPONSE',
  'WWW-Authenticate',
  'Payment-Receipt',
  'X-Request-Id',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'Retry-After',
  'ETag',
].join(', ');

/** Pages of any origin may read every answer, because nothing here depends on cookies. */
export const CORS_HEADERS = { 'access-control-allow-origin': '*', 'access-control-expose-headers': EXPOSED } as const;

/** With it a browser takes a body as what its type says, and never as a script or a page. */
export const NOSNIFF = { 'x-content-type-options': 'nosniff' } as const;
