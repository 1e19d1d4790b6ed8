import type { FastifyInstance, FastifyReply } from 'fastify';
import { AppError } from '../errors.ts';
import { type Facilitator, SUPPORTED } from '../facilitator/facilitator.ts';
import { refusal, type SettleAnswer } from '../facilitator/settle.ts';
import { createAnswer, sendAnswer } from '../http/cache.ts';
import { asAppError } from '../http/framework-errors.ts';
import { clientKey } from '../lib/limits/client.ts';

const MAX_BODY_BYTES = 64 * 1024;
/** The supported kinds change with a deployment only. */
const SUPPORTED_MAX_AGE_SECONDS = 60;

const SUPPORTED_PATH = '/facilitator/supported';
const SETTLE_PATH = '/facilitator/settle';
const VERIFY_PATH = '/facilitator/verify';
const DESCRIPTOR_PATHS = ['/facilitator', '/v1/facilitator/lightning'];

const TOO_LARGE = new AppError(413, 'body_too_large', 'The body may have at most 64 KiB.');
/** The payment flow is "settle, then serve". So there is no verify step, and every verify call gets this answer. */
const NO_VERIFY = JSON.stringify({
  ...{ isValid: false, invalidReason: 'invalid_exact_lnbtc_payment_flow' },
  message:
    'There is no verify step: the payment flow is upfront. Settle the proof by POST /facilitator/settle, and then serve.',
});

/** Mounts the facilitator's routes. They have their own limits, so mount them outside the rate-limited groups. */
export function mountFacilitator(app: FastifyInstance, facilitator: Facilitator): void {
  mountDescriptions(app, facilitator);
  // Encapsulated, because the parser and the errors here have x402's shape and no other route shares them.
  app.register(async (scope) => {
    readAnythingAsJson(scope);
    scope.setErrorHandler((error, _request, reply) => send(reply, refusalOf(error)));
    mountSettle(scope, facilitator);
    scope.route({
      method: 'POST',
      url: VERIFY_PATH,
      // Answered in `onRequest`, so that the body is not read.
      onRequest: async (_request, reply) => sendJson(reply, 400, NO_VERIFY),
      handler: (_request, reply) => sendJson(reply, 400, NO_VERIFY),
    });
  });
}

function mountDescriptions(app: FastifyInstance, facilitator: Facilitator): void {
  const supported = createAnswer(JSON.stringify(SUPPORTED), SUPPORTED_MAX_AGE_SECONDS);
  app.route({
    method: ['GET', 'HEAD'],
    url: SUPPORTED_PATH,
    handler: (request, reply) => sendAnswer(request, reply, supported),
  });
  for (const url of DESCRIPTOR_PATHS) {
    app.route({
      method: ['GET', 'HEAD'],
      url,
      handler: async (_request, reply) => sendJson(reply, 200, JSON.stringify(await facilitator.descriptor())),
    });
  }
}

/** Checks size and limits before the body is read, so that a refused call costs next to nothing. */
function mountSettle(scope: FastifyInstance, facilitator: Facilitator): void {
  scope.route({
    method: 'POST',
    url: SETTLE_PATH,
    bodyLimit: MAX_BODY_BYTES,
    onRequest: async (request, reply) => {
      if (Number(request.headers['content-length']) > MAX_BODY_BYTES) throw TOO_LARGE;
      const refused = await facilitator.admit(clientKey(request.ip));
      return refused ? send(reply, refused) : undefined;
    },
    handler: async (request, reply) =>
      send(reply, await facilitator.settleAdmitted(request.body, clientKey(request.ip))),
  });
}

/**
 * Parses every content type as JSON, because a seller's client may forget the header. Text that is not JSON becomes a body that is no object.
 * So no later code sees the parser's error, which would quote the text. JSON.parse treats `__proto__` like any other key.
 */
function readAnythingAsJson(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', { parseAs: 'string' }, (_request, text, done) => {
    done(null, parseJson(String(text)));
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Puts a refusal by the framework into x402's shape. A bug of ours is thrown on to the service's own error handler, which logs it. */
function refusalOf(error: unknown): SettleAnswer {
  const { status } = asAppError(error);
  const isCallers = status < 500 || (error as { statusCode?: unknown }).statusCode === 400;
  if (!isCallers) throw error;
  if (status === 413) return refusal(status, 'body_too_large');
  return status === 414 ? refusal(status, 'url_too_long') : refusal(400, 'invalid_request');
}

function send(reply: FastifyReply, { status, body, retryAfterSeconds }: SettleAnswer): FastifyReply {
  if (retryAfterSeconds !== undefined) reply.header('retry-after', String(retryAfterSeconds));
  return sendJson(reply, status, JSON.stringify(body));
}

function sendJson(reply: FastifyReply, status: number, text: string): FastifyReply {
  reply.header('cache-control', 'no-store');
  reply.header('content-type', 'application/json; charset=utf-8');
  return reply.code(status).send(text);
}
