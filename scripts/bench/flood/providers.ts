import type { LoopbackServer } from '../../../dev/lightning/lnd-rest.ts';
import { type Answered, ok, serveJson } from './json-http.ts';

/** How a provider says that there were too many requests: HTTP 429, or JSON-RPC error -32011 as Arc's public endpoint does. */
export type Refusal = '429' | 'rpc';

/** One HTTP request as a provider met it. */
export interface Met {
  /** Since the epoch, in milliseconds. */
  readonly atMs: number;
  /** Of its JSON-RPC calls; each once, sorted, joined with `+`. */
  readonly methods: string;
  readonly passed: boolean;
}

/** A chain's provider that bears so many requests a second. */
export interface Provider extends LoopbackServer {
  /** Every request since the start or the last `forget`, in order. */
  readonly met: readonly Met[];
  forget(): void;
}

interface ProviderOptions {
  /** The real node. */
  readonly target: string;
  /** HTTP requests that are let through in any second. */
  readonly perSecond: number;
  readonly refusal: Refusal;
  /** Told of a raw transaction before the node is. */
  readonly onSend: (raw: string) => Promise<void>;
}

interface Call {
  readonly id: unknown;
  readonly method: string;
  readonly params?: readonly unknown[];
}

const SECOND_MS = 1000;

/** Starts a provider in front of a node. A request that is refused costs nothing: the node does not hear of it, and it is not counted against the limit. */
export async function startProvider({ target, perSecond, refusal, onSend }: ProviderOptions): Promise<Provider> {
  let met: Met[] = [];
  let passes: number[] = [];

  function mayPass(now: number): boolean {
    passes = passes.filter((atMs) => now - atMs < SECOND_MS);
    if (passes.length >= perSecond) return false;
    passes.push(now);
    return true;
  }

  const server = await serveJson(async ({ text }) => {
    const body: unknown = JSON.parse(text);
    const calls = [body].flat() as Call[];
    const passed = mayPass(performance.now());
    const methods = [...new Set(calls.map(({ method }) => method))].sort().join('+');
    met.push({ atMs: Date.now(), methods, passed });
    if (!passed) return refuse(refusal, calls, Array.isArray(body));
    for (const { method, params } of calls) if (method === 'eth_sendRawTransaction') await onSend(String(params?.[0]));
    const answer = await fetch(target, { method: 'POST', body: text, headers: { 'content-type': 'application/json' } });
    return { status: answer.status, text: await answer.text() };
  });

  return {
    ...server,
    get met() {
      return met;
    },
    forget: () => {
      met = [];
    },
  };
}

function refuse(refusal: Refusal, calls: readonly Call[], isBatch: boolean): Answered {
  if (refusal === '429') return { status: 429, text: '{"error":"too many requests"}' };
  const error = { code: -32011, message: 'request limit reached' };
  const replies = calls.map(({ id }) => ({ jsonrpc: '2.0', id, error }));
  return ok(isBatch ? replies : replies[0]);
}
