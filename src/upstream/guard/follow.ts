import type { Dispatcher } from 'undici';
import { AppError } from '../../errors.ts';
import { type Exchange, openExchange } from '../client/exchange.ts';
import { ExchangeFailed } from '../client/failure.ts';
import type { DialOptions } from './dial.ts';
import { type GuardedOpened, openGuarded } from './guarded-exchange.ts';

/** A browser would follow 20; honest servers of data and pages need two or three. */
export const MAX_REDIRECTS = 5;

const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/** Where an answer points, or null when it is no redirect or names no place. */
export function redirectTarget(status: number, location: string | undefined, from: URL): URL | null {
  if (!REDIRECTS.has(status) || location === undefined) return null;
  // Header bytes come as Latin-1; servers that put a name or path there unescaped mean UTF-8, and browsers read it so.
  return URL.parse(Buffer.from(location, 'latin1').toString('utf8'), from.href);
}

/**
 * Follows an upstream's redirects by hand, for GET and HEAD. The first origin is the operator's choice; any other one goes through the
 * guard, as a stranger's would, never from https to http, and without the credentials that were meant for the first.
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

/** What the guard says of a buyer's URL would be the buyer's fault; here it is the upstream's. */
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
  // Whatever else it was, it was meant for the first host: keys travel under many names.
  const kept = ['user-agent', 'accept'].flatMap((name) => {
    const value = exchange.headers[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return { ...exchange, headers: Object.fromEntries(kept), url: target };
}
