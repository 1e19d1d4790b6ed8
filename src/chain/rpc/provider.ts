import { Pool } from 'undici';
import { type Answer, ProviderFailure, readAnswers } from './answers.ts';
import type { RpcCall } from './call.ts';

/** One JSON-RPC endpoint, over its own keep-alive connections. */
export interface Provider {
  /** Scheme and host. Only this part of the URL may be published, because the path may hold a key. */
  readonly origin: string;
  /** The host, with its port where the URL names one. Two URLs of one host are one witness. */
  readonly host: string;
  /** Sends one HTTP request for one or more calls, and returns the answers in their order. Throws ProviderFailure when there is no usable answer. */
  call(calls: readonly RpcCall[], signal?: AbortSignal): Promise<Answer[]>;
  close(): Promise<void>;
}

/** The largest answer that is read. A full block with receipts is far smaller. */
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;
/** More parallel requests than this are queued. Public endpoints limit long before. */
const MAX_CONNECTIONS = 32;
/** Longer than undici's default of 4 s, to save TLS handshakes between calls. When a server closes earlier, `withOneRetry` repeats the request. */
const KEEP_ALIVE_MS = 30_000;
/** Some endpoints answer 403 to agents that do not look like a browser. */
const USER_AGENT = 'Mozilla/5.0 (compatible; percall)';

/** Opens nothing until the first call. `timeoutMs` bounds a request from its start to the last byte of its answer. */
export function createProvider(url: string, timeoutMs: number): Provider {
  const { origin, host, pathname, search, username, password } = new URL(url);
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
    host,
    async call(calls, signal) {
      const ids = calls.map(() => ++lastId);
      const requests = calls.map(({ method, params }, at) => ({ jsonrpc: '2.0', id: ids[at], method, params }));
      const body = JSON.stringify(requests.length === 1 ? requests[0] : requests);
      const text = await withinTime(timeoutMs, signal, (both) => withOneRetry(() => post(body, both)));
      return readAnswers(parseJson(text), ids);
    },
    close: () => pool.destroy(),
  };
}

/** Runs `task` under the time-out and the caller's signal. Rethrows the caller's abort; any other error becomes a ProviderFailure. */
async function withinTime<T>(
  timeoutMs: number,
  signal: AbortSignal | undefined,
  task: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const control = new AbortController();
  // The error is made when it is needed: its stack costs more than the rest of this function.
  const timer = setTimeout(() => control.abort(new ProviderFailure('timeout', 'timed out')), timeoutMs);
  const onAbort = () => control.abort(signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    return await task(control.signal);
  } catch (error) {
    signal?.throwIfAborted();
    if (control.signal.aborted) throw control.signal.reason;
    throw error instanceof ProviderFailure ? error : new ProviderFailure('transport', describe(error), error);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
  }
}

const RESETS = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

/**
 * Repeats a request once when its connection was reset. A healthy server may close an idle connection just as we write to it.
 * Safe for every method that we use: reads change nothing, and a raw transaction sent twice is the same transaction.
 */
async function withOneRetry<T>(task: () => Promise<T>): Promise<T> {
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
    throw new ProviderFailure('malformed', 'an answer that is not JSON');
  }
}
