import type { Dispatcher } from 'undici';
import { AppError } from '../../errors.ts';
import { type Exchange, openExchange } from '../client/exchange.ts';
import { ExchangeFailed } from '../client/failure.ts';
import type { DialOptions } from './dial.ts';
import { type GuardedOpened, openGuarded } from './guarded-exchange.ts';

/** A browser follows 20. Real servers of data and pages need two or three. */
export const MAX_REDIRECTS = 5;

const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/** The target of a redirect. Null when the answer is no redirect or has no usable location. */
export function redirectTarget(status: number, location: string | undefined, from: URL): URL | null {
  if (!REDIRECTS.has(status) || location === undefined) return null;
  // Header bytes come as Latin-1. Servers that send a location unescaped mean UTF-8, and browsers read it as UTF-8.
  return URL.parse(Buffer.from(location, 'latin1').toString('utf8'), from.href);
}

/**
 * Follows an upstream's redirects by hand, for GET and HEAD. The operator has chosen the first origin.
 * Any other one passes the guard like a third party's URL, never from https to http, and gets no credentials.
 */
export async function followRedirects(
  dispatcher: Dispatcher,
  guard: DialOptions,
  first: Exchange,
  maxBytes: number,
  signal: AbortSignal,
) {
  const home = first.url.origin;
  let exchange = first;
  for (let hops = 0; hops <= MAX_REDIRECTS; hops++) {
    const guarded = exchange.url.origin === home ? null : await openElsewhere(exchange, guard, signal);
    const opened = guarded ?? (await openExchange(dispatcher, exchange, signal));
    try {
      const { status, headers } = opened;
      const target = exchange.method === 'POST' ? null : redirectTarget(status, headers.location, exchange.url);
      if (target === null) return { status, headers, body: await opened.read(maxBytes), url: exchange.url.href };
      opened.discard();
      exchange = moved(exchange, target);
    } finally {
      await guarded?.close();
    }
  }
  throw new ExchangeFailed('reading', 'redirects too often');
}

/** The guard's errors blame the buyer's URL. Here the upstream chose the URL, so they become ExchangeFailed. */
async function openElsewhere(exchange: Exchange, guard: DialOptions, signal: AbortSignal): Promise<GuardedOpened> {
  try {
    return await openGuarded(exchange, guard, signal);
  } catch (error) {
    throw error instanceof AppError
      ? new ExchangeFailed('reading', 'redirects to where we do not follow', error)
      : error;
  }
}

function moved(exchange: Exchange, target: URL): Exchange {
  if (target.origin === exchange.url.origin) return { ...exchange, url: target };
  if (exchange.url.protocol === 'https:' && target.protocol !== 'https:') {
    throw new ExchangeFailed('reading', 'redirects from https to http');
  }
  // All other headers were meant for the first host, and any of them may hold a key.
  const kept = ['user-agent', 'accept'].flatMap((name) => {
    const value = exchange.headers[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return { ...exchange, headers: Object.fromEntries(kept), url: target };
}
