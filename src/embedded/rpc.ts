import { Pool } from 'undici';

/** A node refused a call or did not answer. */
class RpcFailed extends Error {
  readonly code: number | null;
  readonly data: unknown;
  constructor(method: string, message: string, code: number | null = null, data: unknown = undefined, cause?: unknown) {
    super(`${method}: ${message}`, { cause });
    this.name = 'RpcFailed';
    this.code = code;
    this.data = data;
  }
}

/** One JSON-RPC call; throws RpcFailed with the node's own message. */
export type Rpc = <T>(method: string, params?: readonly unknown[]) => Promise<T>;

interface Reply<T> {
  readonly result: T;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** Longer than any call to a node on the same machine takes, short enough that a dead one is noticed. */
const TIMEOUT_MS = 15_000;

const HEADERS = { 'content-type': 'application/json' };

/**
 * JSON-RPC to one node over HTTP; nothing is retried, because the embedded network's own calls are not all repeatable.
 * Blocks alone make four calls a second. `fetch` takes three times the processor time for each.
 */
export function createRpc(url: string): Rpc {
  const pool = new Pool(url);
  let id = 0;
  return async <T>(method: string, params: readonly unknown[] = []): Promise<T> => {
    id += 1;
    const body = JSON.stringify({ jsonrpc: '2.0', id, method, params });
    const reply = await pool
      .request({ path: '/', method: 'POST', headers: HEADERS, body, signal: AbortSignal.timeout(TIMEOUT_MS) })
      .then((response) => response.body.json() as Promise<Reply<T>>)
      .catch((cause: unknown) => {
        throw new RpcFailed(method, `no answer from ${url}`, null, undefined, cause);
      });
    if (reply.error) throw new RpcFailed(method, reply.error.message, reply.error.code, reply.error.data);
    return reply.result;
  };
}

/** A number as JSON-RPC writes it. */
export function toQuantity(value: bigint | number): `0x${string}` {
  return `0x${value.toString(16)}`;
}
