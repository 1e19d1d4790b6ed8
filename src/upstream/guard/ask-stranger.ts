import { performance } from 'node:perf_hooks';
import { withinDeadline } from '../client/deadline.ts';
import type { DialOptions } from './dial.ts';
import { redirectTarget } from './follow.ts';
import { openGuarded } from './guarded-exchange.ts';

/** One request to a stranger's server. */
export interface StrangerRequest {
  readonly url: URL;
  readonly method: 'GET' | 'POST';
  readonly accept: string;
  /** JSON, for POST. */
  readonly body?: string;
  /** How many redirects of a GET are followed; the one after them is the answer. */
  readonly redirects: number;
  /** Throws for an address that is not to be asked; it hears every hop before it is made. */
  judge(url: URL): void;
}

/** How all strangers are asked. */
export interface StrangerOptions {
  readonly dial: DialOptions;
  readonly userAgent: string;
  /** For all hops and the body together. */
  readonly timeoutMs: number;
}

/** What the last hop answered; the body is still to be read. */
export interface StrangerAnswer {
  readonly url: URL;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Of the last hop alone, from the look-up of its host to its headers: what a buyer without an open connection waits. */
  readonly latencyMs: number;
  /** The whole body, or ExchangeFailed when it is larger. */
  read(maxBytes: number): Promise<Buffer>;
}

/**
 * Asks a stranger's server through the whole guard, every hop of it, and closes the connection when `use` is done with the answer.
 * No cookies, no referrer, no credentials. Throws what `judge` and the guard throw, NotFound for a host that does not exist, or ExchangeFailed.
 */
export function askStranger<T>(
  request: StrangerRequest,
  { dial, userAgent, timeoutMs }: StrangerOptions,
  signal: AbortSignal | undefined,
  use: (answer: StrangerAnswer) => Promise<T>,
): Promise<T> {
  const { method, accept, body, redirects, judge } = request;
  const typed = body === undefined ? {} : { 'content-type': 'application/json' };
  const headers = { accept, 'user-agent': userAgent, ...typed };
  return withinDeadline(timeoutMs, signal, async (within) => {
    let url = request.url;
    for (let hops = 0; ; hops += 1) {
      judge(url);
      const started = performance.now();
      const opened = await openGuarded({ url, method, headers, body }, dial, within);
      const latencyMs = performance.now() - started;
      try {
        const { status, read } = opened;
        const follows = method === 'GET' && hops < redirects;
        const target = follows ? redirectTarget(status, opened.headers.location, url) : null;
        if (target === null) return await use({ url, status, headers: opened.headers, latencyMs, read });
        url = target;
      } finally {
        await opened.close();
      }
    }
  });
}
