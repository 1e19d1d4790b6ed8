import { METHODS } from 'node:http';
import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify';
import { AppError } from '../errors.ts';

/** CONNECT never reaches a route (Node closes the connection); OPTIONS is CORS's. */
const NEVER_REFUSED = ['CONNECT', 'OPTIONS'];

/** Registers every method that Node parses with the router, so that `refuseOtherMethods` covers all of them. */
export function acceptEveryMethod(app: FastifyInstance): void {
  for (const method of METHODS) {
    if (!app.supportedMethods.includes(method) && method !== 'CONNECT') app.addHttpMethod(method);
  }
}

/**
 * Answers 405 with `Allow` to every method of a mounted path that is not in `allowed`.
 * It is a route of the same pattern, so that it covers parametric paths and every spelling that the router accepts. It refuses in onRequest, so that no
 * body is read.
 */
export function refuseOtherMethods(app: FastifyInstance, url: string, allowed: readonly string[]): void {
  const allow = [...allowed, 'OPTIONS'].join(', ');
  const refusalOf = (used: string) =>
    new AppError(405, 'method_not_allowed', `This path does not answer ${used}; it answers ${allow}.`, {
      headers: { allow },
    });
  const refuse: onRequestHookHandler = (request, _reply, done) => done(refusalOf(request.method));
  const method = app.supportedMethods.filter((name) => !allowed.includes(name) && !NEVER_REFUSED.includes(name));
  const handler = (request: FastifyRequest) => Promise.reject(refusalOf(request.method));
  app.route({ method, url, onRequest: refuse, handler });
}
