import { connect, isIP, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { describeFailure, ExchangeFailed } from '../client/failure.ts';
import { hostOf, requirePublicAddresses, requirePublicUrl } from './guard.ts';
import type { Resolve } from './resolve.ts';

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
}

/** The time of each step, in milliseconds; null for a step that was not needed. */
export interface Phases {
  readonly dnsMs: number | null;
  readonly connectMs: number;
  readonly tlsMs: number | null;
}

/** Facts about the server's TLS. */
export interface TlsFacts {
  readonly protocol: string;
  readonly issuer: string | null;
  /** Unix seconds. */
  readonly validTo: number | null;
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
  const raw = await connectAny(addresses, port, signal);
  const connected = performance.now();
  const dnsMs = looked ? located - started : null;
  const connectMs = connected - located;
  if (url.protocol === 'http:') return { socket: raw, phases: { dnsMs, connectMs, tlsMs: null }, tls: null };
  const socket = await secure(raw, hostOf(url), options.ca, signal);
  return { socket, phases: { dnsMs, connectMs, tlsMs: performance.now() - connected }, tls: factsOf(socket) };
}

async function locate(url: URL, options: DialOptions, signal: AbortSignal) {
  const host = hostOf(url);
  requirePublicUrl(url, options.ownHosts);
  const known = options.testHosts?.get(host);
  if (known) return { addresses: [known.address], port: known.port, looked: true };
  const literal = isIP(host) !== 0;
  const addresses = literal ? [host] : await options.resolve(host, signal);
  requirePublicAddresses(addresses);
  const standard = url.protocol === 'https:' ? 443 : 80;
  return { addresses, port: options.portFor?.(standard) ?? standard, looked: !literal };
}

async function connectAny(addresses: readonly string[], port: number, signal: AbortSignal): Promise<Socket> {
  let failure: unknown;
  for (const address of addresses.slice(0, MAX_ADDRESSES)) {
    try {
      return await connectOne(address, port, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      failure = error;
    }
  }
  throw describeFailure(failure, false);
}

function connectOne(host: string, port: number, signal: AbortSignal): Promise<Socket> {
  const socket = connect({ host, port, noDelay: true });
  const timer = setTimeout(() => socket.destroy(new ExchangeFailed('connecting', 'connecting timed out')), ATTEMPT_MS);
  return opened(socket, 'connect', signal).finally(() => clearTimeout(timer));
}

function secure(raw: Socket, host: string, ca: string | undefined, signal: AbortSignal): Promise<TLSSocket> {
  const socket = connectTls({
    socket: raw,
    // RFC 6066 allows no address as server name. The certificate is checked against `host` in both cases.
    host,
    ...(isIP(host) === 0 && { servername: host }),
    ALPNProtocols: ['http/1.1'],
    ...(ca !== undefined && { ca }),
  });
  return opened(socket, 'secureConnect', signal);
}

/** Waits for the socket's event. An error, a close or an abort before it destroys the socket. */
function opened<T extends Socket>(socket: T, event: 'connect' | 'secureConnect', signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => socket.destroy(signal.reason);
    const onError = (error: Error) => fail(signal.aborted ? signal.reason : describeFailure(error, false));
    const onClose = () => fail(new ExchangeFailed('connecting', 'the connection was lost'));
    const settle = () => {
      signal.removeEventListener('abort', onAbort);
      socket.off('error', onError).off('close', onClose);
      // Without a listener an error would end the process. The caller adds its own.
      socket.on('error', () => undefined);
    };
    const fail = (error: unknown) => {
      settle();
      reject(error);
    };
    socket.once(event, () => {
      settle();
      resolve(socket);
    });
    socket.once('error', onError).once('close', onClose);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
}

function factsOf(socket: TLSSocket): TlsFacts {
  const certificate = socket.getPeerCertificate();
  const validTo = Date.parse(certificate.valid_to);
  const issuer: { O?: string | string[]; CN?: string | string[] } = certificate.issuer ?? {};
  return {
    protocol: socket.getProtocol() ?? 'unknown',
    issuer: first(issuer.O) ?? first(issuer.CN) ?? null,
    validTo: Number.isNaN(validTo) ? null : Math.floor(validTo / 1000),
  };
}

function first(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}
