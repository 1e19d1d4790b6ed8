import { performance } from 'node:perf_hooks';
import { ExchangeFailed } from '../client/failure.ts';
import type { DialOptions } from './dial.ts';
import { MAX_REDIRECTS, redirectTarget } from './follow.ts';
import { hostOf } from './guard.ts';
import { type GuardedOpened, openGuarded } from './guarded-exchange.ts';

/** One answer that led elsewhere. */
export interface Hop {
  readonly url: string;
  readonly status: number;
  readonly latencyMs: number;
}

/** The answer at the end of the redirects; its timings are those of the last hop. It must be closed. */
export interface Landing extends GuardedOpened {
  readonly url: URL;
  readonly hops: readonly Hop[];
  /** From the first look-up to the last answer's headers, redirects included. */
  readonly totalMs: number;
}

/** What a visit needs besides its URL. */
export interface VisitOptions extends DialOptions {
  readonly userAgent: string;
  /** Throws when the host has had enough requests. */
  readonly limitHost: (host: string) => void;
}

/** What we can read, and English where there is a choice. */
const WANTED = {
  accept: 'text/html, application/xhtml+xml, text/plain;q=0.8, */*;q=0.1',
  'accept-language': 'en, *;q=0.5',
};

/**
 * Gets a stranger's page, following its redirects; every hop goes through the whole guard.
 * Throws what the guard throws, TooMany for a host that has had enough, or ExchangeFailed. No cookies, no referrer, no credentials.
 */
export async function visit(start: URL, options: VisitOptions, signal: AbortSignal): Promise<Landing> {
  const started = performance.now();
  const headers = { ...WANTED, 'user-agent': options.userAgent };
  const hops: Hop[] = [];
  let url = start;
  while (hops.length <= MAX_REDIRECTS) {
    const hopStarted = performance.now();
    options.limitHost(hostOf(url));
    const opened = await openGuarded({ url, method: 'GET', headers }, options, signal);
    const target = redirectTarget(opened.status, opened.headers.location, url);
    if (target === null) return { ...opened, url, hops, totalMs: performance.now() - started };
    await opened.close();
    hops.push({ url: url.href, status: opened.status, latencyMs: performance.now() - hopStarted });
    url = target;
  }
  throw new ExchangeFailed('reading', `it redirects more than ${MAX_REDIRECTS} times`);
}
