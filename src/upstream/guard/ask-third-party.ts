import { performance } from 'node:perf_hooks';
import { withinDeadline } from '../client/deadline.ts';
import type { DialOptions } from './dial.ts';
import { redirectTarget } from './follow.ts';
import { openGuarded } from './guarded-exchange.ts';

/** One request to a third party's server. */
export interface ThirdPartyRequest {
  readonly url: URL;
  readonly method: 'GET' | 'POST';
  readonly accept: string;
  /** JSON, for POST. */
  readonly body?: string;
  /** How many redirects of a GET are followed. A further redirect is the answer. */
  readonly redirects: number;
  /** Called for each hop before its request. Throws for a URL that must not be requested. */
  checkUrl(url: URL): void;
}

/** The options of all requests to third parties. */
export interface ThirdPartyOptions {
  readonly dial: DialOptions;
  readonly userAgent: string;
  /** Time-out of all hops and the body together. */
  readonly timeoutMs: number;
}

/** The answer of the last hop. Its body is not read yet. */
export interface ThirdPartyAnswer {
  readonly url: URL;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The time of the last hop, from the resolution of its host to its headers: what a buyer without an open connection waits. */
  readonly latencyMs: number;
  /** The whole body, or ExchangeFailed when it is larger. */
  read(maxBytes: number): Promise<Buffer>;
}

/**
 * Sends a request to a third party's server. Every hop passes the whole guard. Closes the connection when `use` has settled.
 * No cookies, no referrer, no credentials. Throws the errors of `checkUrl` and of the guard, NotFound for a host that does not exist, or ExchangeFailed.
 */
export function askThirdParty<T>(
  request: ThirdPartyRequest,
  { dial, userAgent, timeoutMs }: ThirdPartyOptions,
  signal: AbortSignal | undefined,
  use: (answer: ThirdPartyAnswer) => Promise<T>,
): Promise<T> {
  const { method, accept, body, redirects, checkUrl } = request;
  const typed = body === undefined ? {} : { 'content-type': 'application/json' };
  const headers = { accept, 'user-agent': userAgent, ...typed };
  return withinDeadline(timeoutMs, signal, async (within) => {
    let url = request.url;
    for (let hops = 0; ; hops += 1) {
      checkUrl(url);
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
