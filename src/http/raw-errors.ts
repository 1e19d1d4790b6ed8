import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import { AppError } from '../errors.ts';
import { CORS_HEADERS, NOSNIFF } from './cors.ts';
import { problemHeaders, renderProblem } from './problem.ts';

/** The parser's codes with their own answer. Any other code means that the request is not HTTP. */
const KNOWN: Record<string, readonly [status: number, code: string, detail: string]> = {
  HPE_HEADER_OVERFLOW: [431, 'headers_too_large', 'Request line and headers together may have at most 16 KiB.'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'request_timeout', 'The request did not arrive in time.'],
};

interface RawErrorOptions {
  log: Logger;
  nextId: () => string;
}

/**
 * Answers a request that the HTTP parser refuses, before any route or hook, and closes the connection.
 * It writes nothing while an earlier request of the connection is unanswered: the client would read the refusal as the answer to that request, which may
 * be a paid one.
 */
export function createClientErrorHandler({ log, nextId }: RawErrorOptions) {
  return (error: Error & { code?: string }, socket: Socket): void => {
    const pending = (socket as Socket & { _httpMessage?: unknown })._httpMessage;
    if (error.code === 'ECONNRESET' || !socket.writable || pending) {
      socket.destroy();
      return;
    }
    const id = nextId();
    const known = KNOWN[error.code ?? ''] ?? [400, 'malformed_request', 'This is not a readable HTTP request.'];
    const problem = new AppError(...known);
    log.debug({ requestId: id, status: problem.status, parser: error.code }, 'a connection sent no readable request');
    socket.end(rawAnswer(problem, id));
  };
}

/** A whole answer for a connection that is closed with it, as the bytes of HTTP/1.1. */
export function rawAnswer(problem: AppError, id: string): string {
  const body = renderProblem(problem, { id, target: '' });
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
