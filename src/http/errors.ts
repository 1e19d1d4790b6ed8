import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { type AppError, NotFound } from '../errors.ts';
import { CORS_HEADERS, NOSNIFF } from './cors.ts';
import { asAppError } from './framework-errors.ts';
import { problemHeaders, renderProblem } from './problem.ts';

/** Answers an error with a page for people when the request asks for one. False: the caller answers with a problem. */
export type ProblemPage = (request: FastifyRequest, reply: FastifyReply, error: AppError) => boolean;

/**
 * Installs the error handler and the not-found handler. Every failure is answered as problem+json with a stable code.
 * `onUnmatched` is called for answers that belong to no route, which the counters of routes do not count. `adviceOn` says what a client that asked for
 * such a target can do. `page` may answer a browser instead.
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

/** Answers with a problem body; `extra` adds members to the standard ones. */
export function sendProblem(
  request: FastifyRequest,
  reply: FastifyReply,
  error: AppError,
  extra: Record<string, unknown> = {},
): void {
  // A handler that failed late may have set headers for the answer that it did not give.
  for (const name of ['etag', 'content-length', 'last-modified']) reply.removeHeader(name);
  reply
    .code(error.status)
    .headers(problemHeaders(error))
    .send(renderProblem(error, { id: request.id, target: request.raw.url ?? '' }, extra));
}

/** Answers a request that fails before routing (a URL that cannot be decoded). No hook has run, so the common headers are set here. */
export function answerBeforeRouting(error: Error, request: FastifyRequest, reply: FastifyReply): void {
  reply.headers({ 'x-request-id': request.id, ...NOSNIFF, ...CORS_HEADERS });
  sendProblem(request, reply, asAppError(error));
}

/** Logs a bug with its stack, and a named failure with its detail and its cause. An expected failure is no warning. */
function logFailure(log: Logger, request: FastifyRequest, problem: AppError): void {
  const where = { requestId: request.id, method: request.method, route: request.routeOptions.url, code: problem.code };
  if (problem.code === 'internal') log.error({ ...where, err: problem.cause }, 'a request failed on a bug');
  else
    log[problem.isExpected ? 'info' : 'warn'](
      { ...where, detail: problem.message, err: problem.cause },
      'a request failed',
    );
}
