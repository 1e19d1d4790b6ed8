import { performance } from 'node:perf_hooks';
import { Client, type Dispatcher } from 'undici';
import { AppError } from '../../errors.ts';
import { type Exchange, type Opened, openExchange } from '../client/exchange.ts';
import { ExchangeFailed, withinDeadline } from '../client/failure.ts';
import { type DialOptions, dial, type Hop, type Phases, type TlsFacts } from './dial.ts';
import { hostOf } from './guard.ts';

// Requests and their redirects, followed by hand: `followRedirects` for a source that the operator has chosen; `visit`
// and `askThirdParty` for anyone's server, where every hop passes the whole guard.

/** A browser follows 20. Real servers of data and pages need two or three. */
export const MAX_REDIRECTS = 5;

/** For GET and HEAD. Any origin but the first passes the guard, never from https to http, and gets no credentials. */
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

const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/** Null when the answer is no redirect or has no usable location. */
function redirectTarget(status: number, location: string | undefined, from: URL): URL | null {
  if (!REDIRECTS.has(status) || location === undefined) return null;
  // Header bytes come as Latin-1. Servers that send a location unescaped mean UTF-8, and browsers read it as UTF-8.
  return URL.parse(Buffer.from(location, 'latin1').toString('utf8'), from.href);
}

/** A response from a third party's host, with the time of each step. The caller must close it, read or not. */
interface GuardedOpened extends Opened {
  readonly timings: Phases & { readonly firstByteMs: number };
  readonly tls: TlsFacts | null;
  close(): Promise<void>;
}

/** One exchange through the whole guard, without a proxy, on its own connection: none relies on another's checks. */
async function openGuarded(exchange: Exchange, options: DialOptions, signal: AbortSignal): Promise<GuardedOpened> {
  const { socket, phases, tls } = await dial(exchange.url, options, signal);
  const sent = performance.now();
  options.progress?.enter('request');
  let used = false;
  const client = new Client(exchange.url.origin, {
    // Only the checked socket may be used; a second socket would not be checked.
    connect: (_options, callback) => {
      const given = used;
      used = true;
      // Called later, because undici would wait for ever when the callback runs synchronously.
      queueMicrotask(() =>
        given ? callback(new ExchangeFailed('answering', 'the connection was lost'), null) : callback(null, socket),
      );
    },
  });
  const close = async () => {
    await client.destroy();
    socket.destroy();
  };
  try {
    const opened = await openExchange(client, exchange, signal);
    options.progress?.answered();
    return { ...opened, timings: { ...phases, firstByteMs: performance.now() - sent }, tls, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The answer after all redirects, with the timings of the last hop. The caller must close it. */
export interface Landing extends GuardedOpened {
  readonly url: URL;
  readonly hops: readonly Hop[];
  /** From the first look-up to the last answer's headers, redirects included. */
  readonly totalMs: number;
}

interface VisitOptions extends DialOptions {
  readonly userAgent: string;
  readonly limitHost: (host: string) => void;
}

/** The content types that we can read, and English as the preferred language. */
const WANTED = {
  accept:
    'text/html, application/xhtml+xml, text/plain;q=0.8, application/pdf;q=0.8, application/json;q=0.7, */*;q=0.1',
  'accept-language': 'en, *;q=0.5',
};

/** A third party's page; no cookies, referrer or credentials. Throws the guard's errors, TooMany, ExchangeFailed. */
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

interface ThirdPartyRequest {
  readonly url: URL;
  readonly method: 'GET' | 'POST';
  readonly accept: string;
  readonly body?: string | undefined;
  /** How many redirects of a GET are followed. A further redirect is the answer. */
  readonly redirects: number;
  /** Called for each hop before its request. Throws for a URL that must not be requested. */
  checkUrl(url: URL): void;
}

export interface ThirdPartyOptions {
  readonly dial: DialOptions;
  readonly userAgent: string;
  /** Of all hops and the body together. */
  readonly timeoutMs: number;
}

export interface ThirdPartyAnswer {
  readonly url: URL;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Of the last hop, from the resolution of its host to its headers: what a buyer without a connection waits. */
  readonly latencyMs: number;
  /** The whole body, or ExchangeFailed when it is larger. */
  read(maxBytes: number): Promise<Buffer>;
}

/** Without cookies, referrer or credentials. Throws as `checkUrl` and the guard do, NotFound, ExchangeFailed. */
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
