import { Pool } from 'undici';
import { type Answer, ProviderFailure, readAnswers } from './answers.ts';
import type { RpcCall } from './call.ts';

/** One JSON-RPC endpoint, over its own keep-alive connections. */
export interface Provider {
  /** Scheme and host: the only part of its address that may be shown, because keys live in paths. */
  readonly origin: string;
  /** One HTTP request for one or more calls, answers in their order; ProviderFailure when it gives none that can be used. */
  call(calls: readonly RpcCall[], signal?: AbortSignal): Promise<Answer[]>;
  close(): Promise<void>;
}

/** The largest answer that is read; a full block with receipts stays far below it. */
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;
/** More parallel requests than this queue; public endpoints limit long before. */
const MAX_CONNECTIONS = 32;
/** Longer than undici's 4 s, to spare TLS handshakes between calls; a server that closes earlier costs one repeat (below). */
const KEEP_ALIVE_MS = 30_000;
/** Some endpoints answer 403 to agents that do not look like a browser. */
const USER_AGENT = 'Mozilla/5.0 (compatible; percall)';

/** Opens nothing until the first call. `timeoutMs` bounds a request from its start to the last byte of its answer. */
export function createProvider(url: string, timeoutMs: number): Provider {
  const { origin, pathname, search, username, password } = new URL(url);
  const pool = new Pool(origin, {
    connections: MAX_CONNECTIONS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectTimeout: timeoutMs,
    maxResponseSize: MAX_ANSWER_BYTES,
  });
  const headers: Record<string, string> = { 'content-type': 'application/json', 'user-agent': USER_AGENT };
  if (username !== '' || password !== '') {
    const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    headers.authorization = `Basic ${Buffer.from(credentials).toString('base64')}`;
  }
  const path = `${pathname}${search}`;
  let lastId = 0;

  async function post(body: string, signal: AbortSignal): Promise<string> {
    const response = await pool.request({ path, method: 'POST', headers, body, signal });
    if (response.statusCode === 200) return response.body.text();
    response.body.dump().catch(() => undefined);
    if (response.statusCode === 429) throw new ProviderFailure('rateLimited', 'rate limited');
    throw new ProviderFailure('http', `HTTP ${response.statusCode}`);
  }

  return {
    origin,
    async call(calls, signal) {
      const ids = calls.map(() => ++lastId);
      const requests = calls.map(({ method, params }, at) => ({ jsonrpc: '2.0', id: ids[at], method, params }));
      const body = JSON.stringify(requests.length === 1 ? requests[0] : requests);
      const text = await withinTime(timeoutMs, signal, (both) => oncemore(() => post(body, both)));
      return readAnswers(parseJson(text), ids);
    },
    close: () => pool.destroy(),
  };
}

/** Runs `task` under the time-out and the caller's signal; the caller's abort passes through, anything else is the provider's failure. */
async function withinTime<T>(
  timeoutMs: number,
  signal: AbortSignal | undefined,
  task: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const control = new AbortController();
  const timedOut = new ProviderFailure('timeout', 'timed out');
  const timer = setTimeout(() => control.abort(timedOut), timeoutMs);
  const onAbort = () => control.abort(signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    return await task(control.signal);
  } catch (error) {
    signal?.throwIfAborted();
    if (control.signal.aborted) throw timedOut;
    throw error instanceof ProviderFailure ? error : new ProviderFailure('transport', describe(error), error);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
  }
}

const RESETS = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

/**
 * Repeats once what a reset connection swallowed: the server may close an idle connection just as we write to it, which says nothing about its health.
 * Safe for every method that we use: reads change nothing, and a raw transaction sent twice is the same transaction.
 */
async function oncemore<T>(task: () => Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (error) {
    if (!RESETS.has(codeOf(error))) throw error;
    return task();
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

function describe(error: unknown): string {
  if (codeOf(error) === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') return 'an answer that is too large';
  return codeOf(error) === '' ? 'the connection failed' : `the connection failed (${codeOf(error)})`;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ProviderFailure('malformed', 'an answer that is no JSON');
  }
}
