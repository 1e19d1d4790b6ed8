import { STATUS_CODES } from 'node:http';
import type { AppError, Charged, ParameterError } from '../errors.ts';

/** Media type of every error body (RFC 9457). */
export const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';

/** The members of an error body, as sent. `code` is stable and meant for programs; `charged` says whether money moved. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  instance: string;
  code: string;
  charged: Charged;
  requestId: string;
  errors?: ParameterError[];
}

/** The request id and the raw request target of an answer. */
interface Occasion {
  id: string;
  target: string;
}

/** Longer paths are cut in the body. */
const MAX_INSTANCE = 256;

/**
 * Renders an error as a problem body. `extra` and the error's own members never replace the standard ones.
 * `instance` has no query, because the query is the client's data and answers may be logged.
 */
export function renderProblem(error: AppError, { id, target }: Occasion, extra: Record<string, unknown> = {}): string {
  const problem: Problem = {
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

/** The headers of a problem: it is never cached, and has `Retry-After` in whole seconds when the error defines it. */
export function problemHeaders(error: AppError): Record<string, string> {
  const { retryAfterSeconds } = error;
  return {
    ...error.headers,
    'content-type': PROBLEM_TYPE,
    'cache-control': 'no-store',
    ...(retryAfterSeconds === undefined ? {} : { 'retry-after': String(Math.max(1, Math.ceil(retryAfterSeconds))) }),
  };
}

/** The path of a raw request target, without its query. */
export function pathOf(target: string): string {
  const query = target.indexOf('?');
  return query < 0 ? target : target.slice(0, query);
}
