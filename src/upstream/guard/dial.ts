import { connect, isIP, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { describeFailure, ExchangeFailed, moreTelling } from '../client/failure.ts';
import { hostOf, requirePublicAddresses, requirePublicUrl } from './guard.ts';
import { opened } from './opened.ts';
import type { Progress, TlsFacts } from './progress.ts';
import type { Resolve } from './resolve.ts';
import { secure } from './secure.ts';

/** Addresses for host names in tests and demonstrations, instead of DNS and its check. Never in production. */
export type TestHosts = ReadonlyMap<string, { readonly address: string; readonly port: number }>;

/** How third parties' URLs are connected to. */
export interface DialOptions {
  readonly resolve: Resolve;
  /** Host names of this service. They are refused, so that the service does not call itself. */
  readonly ownHosts?: ReadonlySet<string>;
  readonly testHosts?: TestHosts;
  /** For tests only: the port instead of 80 and 443, which need privileges. */
  readonly portFor?: (port: number) => number;
  /** For tests only: their own certificate authority. */
  readonly ca?: string;
  /** Is told about each step. */
  readonly progress?: Progress;
}

/** The time of each step, in milliseconds; null for a step that was not needed. */
export interface Phases {
  readonly dnsMs: number | null;
  readonly connectMs: number;
  readonly tlsMs: number | null;
}

/** An open connection to a public address. */
export interface Dialled {
  readonly socket: Socket;
  readonly phases: Phases;
  readonly tls: TlsFacts | null;
}

/** The most addresses that are tried: further addresses of a name are mostly in the same dead network. */
const MAX_ADDRESSES = 4;
/** Time-out of one address, so that an address that drops our packets leaves time for the others. */
const ATTEMPT_MS = 2500;

/**
 * Connects to a URL's host, or throws `url_not_public`. It connects to the checked addresses, as literals, without a second resolution.
 * So a name that changes its answer (DNS rebinding) does not help an attacker.
 */
export async function dial(url: URL, options: DialOptions, signal: AbortSignal): Promise<Dialled> {
  const started = performance.now();
  const { addresses, port, looked } = await locate(url, options, signal);
  const located = performance.now();
  options.progress?.enter('connect');
  const raw = await connectAny(addresses, port, signal);
  const connected = performance.now();
  const dnsMs = looked ? located - started : null;
  const connectMs = connected - located;
  if (url.protocol === 'http:') return { socket: raw, phases: { dnsMs, connectMs, tlsMs: null }, tls: null };
  const { ca, progress } = options;
  progress?.enter('tls');
  const { socket, tls } = await secure(raw, { host: hostOf(url), ca, progress }, signal);
  return { socket, phases: { dnsMs, connectMs, tlsMs: performance.now() - connected }, tls };
}

async function locate(url: URL, options: DialOptions, signal: AbortSignal) {
  const host = hostOf(url);
  requirePublicUrl(url, options.ownHosts);
  const literal = isIP(host) !== 0;
  if (!literal) options.progress?.enter('dns');
  const known = options.testHosts?.get(host);
  if (known) return { addresses: [known.address], port: known.port, looked: true };
  const addresses = literal ? [host] : await options.resolve(host, signal);
  requirePublicAddresses(addresses);
  const standard = url.protocol === 'https:' ? 443 : 80;
  return { addresses, port: options.portFor?.(standard) ?? standard, looked: !literal };
}

async function connectAny(addresses: readonly string[], port: number, signal: AbortSignal): Promise<Socket> {
  let failure: ExchangeFailed | null = null;
  for (const address of addresses.slice(0, MAX_ADDRESSES)) {
    try {
      return await connectOne(address, port, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      // A machine without IPv6 fails at each IPv6 address, after what an IPv4 address has said about the server.
      failure = moreTelling(failure, describeFailure(error, false));
    }
  }
  throw failure;
}

function connectOne(host: string, port: number, signal: AbortSignal): Promise<Socket> {
  const socket = connect({ host, port, noDelay: true });
  let late: NodeJS.Immediate | undefined;
  const giveUp = () => socket.destroy(new ExchangeFailed('connecting', 'connecting timed out'));
  // After a pause of the process the timer fires before the event of a connection that was made in time. An immediate comes after that event.
  const timer = setTimeout(() => {
    late = setImmediate(giveUp);
  }, ATTEMPT_MS);
  return opened(socket, 'connect', signal).finally(() => {
    clearTimeout(timer);
    clearImmediate(late);
  });
}
