import { performance } from 'node:perf_hooks';
import { ExchangeFailed } from '../client/failure.ts';
import type { DialOptions } from './dial.ts';
import { MAX_REDIRECTS, redirectTarget } from './follow.ts';
import { hostOf } from './guard.ts';
import { type GuardedOpened, openGuarded } from './guarded-exchange.ts';
import type { Hop } from './progress.ts';

/** The answer after all redirects, with the timings of the last hop. The caller must close it. */
export interface Landing extends GuardedOpened {
  readonly url: URL;
  readonly hops: readonly Hop[];
  /** From the first look-up to the last answer's headers, redirects included. */
  readonly totalMs: number;
}

/** What a visit needs besides its URL. */
export interface VisitOptions extends DialOptions {
  readonly userAgent: string;
  /** Throws TooMany when the host's limit is reached. */
  readonly limitHost: (host: string) => void;
}

/** The content types that we can read, and English as the preferred language. */
const WANTED = {
  accept:
    'text/html, application/xhtml+xml, text/plain;q=0.8, application/pdf;q=0.8, application/json;q=0.7, */*;q=0.1',
  'accept-language': 'en, *;q=0.5',
};

/**
 * Requests a third party's page and follows its redirects. Every hop passes the whole guard.
 * Throws the guard's errors, TooMany for a host whose limit is reached, or ExchangeFailed. No cookies, no referrer, no credentials.
 */
export async function visit(start: URL, options: VisitOptions, signal: AbortSignal): Promise<Landing> {
  const started = performance.now();
  const headers = { ...WANTED, 'user-agent': options.userAgent };
  const hops: Hop[] = [];
  let url = start;
  while (hops.length <= MAX_REDIRECTS) {
    const hopStarted = performance.now();
    options.progress?.startHop(url.href);
    options.limitHost(hostOf(url));
    const opened = await openGuarded({ url, method: 'GET', headers }, options, signal);
    const target = redirectTarget(opened.status, opened.headers.location, url);
    if (target === null) return { ...opened, url, hops, totalMs: performance.now() - started };
    await opened.close();
    const hop = { url: url.href, status: opened.status, latencyMs: performance.now() - hopStarted };
    hops.push(hop);
    options.progress?.followed(hop);
    url = target;
  }
  throw new ExchangeFailed('reading', `it redirects more than ${MAX_REDIRECTS} times`);
}
