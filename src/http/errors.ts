import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { type AppError, NotFound } from '../errors.ts';
import { CORS_HEADERS } from './cors.ts';
import { asAppError } from './framework-errors.ts';
import { problemHeaders, renderProblem } from './problem.ts';

/**
 * Installs the one error handler and the one not-found handler: every failure leaves as problem+json with a stable code.
 * `onUnmatched` hears of answers that belong to no route, which per-route counters cannot see.
 */
export function installErrorHandlers(
  app: FastifyInstance,
  log: Logger,
  onUnmatched: (request: FastifyRequest, status: number) => void,
): void {
  app.setErrorHandler((error, request, reply) => {
    const problem = asAppError(error);
    if (problem.status >= 500) logFailure(log, request, problem);
    sendProblem(request, reply, problem);
  });
  app.setNotFoundHandler((request, reply) => {
    onUnmatched(request, 404);
    sendProblem(
      request,
      reply,
      new NotFound('There is no such route; /openapi.json lists those that are.', 'no_such_route'),
    );
  });
}

/** Answers with a problem body; `extra` members come on top of the standard ones. */
export function sendProblem(
  request: FastifyRequest,
  reply: FastifyReply,
  error: AppError,
  extra: Record<string, unknown> = {},
): void {
  // A handler that failed late may have described the answer it did not give.
  for (const name of ['etag', 'content-length', 'last-modified']) reply.removeHeader(name);
  reply
    .code(error.status)
    .headers(problemHeaders(error))
    .send(renderProblem(error, { id: request.id, target: request.raw.url ?? '' }, extra));
}

/** Answers what fails before routing (a URL that cannot be decoded): no hook has run then, so the common headers are set here. */
export function answerBeforeRouting(error: Error, request: FastifyRequest, reply: FastifyReply): void {
  reply.headers({ 'x-request-id': request.id, ...CORS_HEADERS });
  sendProblem(request, reply, asAppError(error));
}

/** A bug comes with its stack; a failure that we named comes with its code and its cause. */
function logFailure(log: Logger, request: FastifyRequest, problem: AppError): void {
  const where = { requestId: request.id, method: request.method, route: request.routeOptions.url, code: problem.code };
  if (problem.code === 'internal') log.error({ ...where, err: problem.cause }, 'a request failed on a bug');
  else log.warn({ ...where, detail: problem.message, err: problem.cause }, 'a request failed');
}
