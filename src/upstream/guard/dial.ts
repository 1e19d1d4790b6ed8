import { connect, isIP, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { describeFailure, ExchangeFailed, moreTelling } from '../client/failure.ts';
import { hostOf, type Resolve, requirePublicAddresses, requirePublicUrl } from './guard.ts';

export interface DialOptions {
  readonly resolve: Resolve;
  /** Host names of this service. They are refused, so that the service does not call itself. */
  readonly ownHosts?: ReadonlySet<string>;
  readonly testHosts?: TestHosts;
  /** For tests only: the port instead of 80 and 443, which need privileges. */
  readonly portFor?: (port: number) => number;
  /** For tests only: their own certificate authority. */
  readonly ca?: string;
  readonly progress?: Progress | undefined;
}

/** Instead of DNS and its check, in tests and demonstrations. Never in production. */
type TestHosts = ReadonlyMap<string, { readonly address: string; readonly port: number }>;

interface Dialled {
  readonly socket: Socket;
  readonly phases: Phases;
  readonly tls: TlsFacts | null;
}

/** Milliseconds; null for a step that was not needed. */
export interface Phases {
  readonly dnsMs: number | null;
  readonly connectMs: number;
  readonly tlsMs: number | null;
}

/** Texts are the server's own, cut to a length. Times are Unix seconds. */
export interface TlsFacts {
  readonly protocol: string;
  readonly issuer: string | null;
  readonly subject: string | null;
  readonly validFrom: number | null;
  readonly validTo: number | null;
}

/**
 * Connects, or throws `url_not_public`: all of a host's addresses must be public, and one is dialled as a literal, so
 * that DNS rebinding does not help. No byte is sent to an unauthorized server.
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
  options.progress?.enter('tls');
  const { socket, tls } = await secure(raw, hostOf(url), options, signal);
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

/** The most addresses that are tried: further addresses of a name are mostly in the same dead network. */
const MAX_ADDRESSES = 4;
/** Time-out of one address, so that an address that drops our packets leaves time for the others. */
const ATTEMPT_MS = 2500;

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
  // After a pause of the process the timer fires before the event of a connection made in time, an immediate after it.
  const timer = setTimeout(() => {
    late = setImmediate(giveUp);
  }, ATTEMPT_MS);
  return opened(socket, 'connect', signal).finally(() => {
    clearTimeout(timer);
    clearImmediate(late);
  });
}

/** Waits for the socket's event. An error, a close or an abort destroys the socket and rejects. */
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

/** Refuses here and not in Node, which would destroy the socket before a monitor can read when a certificate ends. */
async function secure(raw: Socket, host: string, { ca, progress }: DialOptions, signal: AbortSignal) {
  const socket = connectTls({
    socket: raw,
    // RFC 6066 allows no address as server name. The certificate is checked against `host` in both cases.
    host,
    ...(isIP(host) === 0 && { servername: host }),
    ALPNProtocols: ['http/1.1'],
    rejectUnauthorized: false,
    ...(ca !== undefined && { ca }),
  });
  await opened(socket, 'secureConnect', signal);
  const tls = factsOf(socket);
  const fault = faultOf(socket);
  progress?.secured(tls, fault);
  if (fault === null) return { socket, tls };
  socket.destroy();
  throw new ExchangeFailed('connecting', `its TLS certificate is not valid (${fault})`);
}

/** OpenSSL's name of the fault for which Node did not authorize the server; null for one that it did. */
function faultOf(socket: TLSSocket): string | null {
  if (socket.authorized) return null;
  // Node has the code here, where its types say an error.
  const fault: unknown = socket.authorizationError;
  return typeof fault === 'string' && /^[A-Z_]+$/.test(fault) ? fault : 'CERT_UNTRUSTED';
}

const MAX_NAME = 200;

interface Name {
  readonly O?: string | string[];
  readonly CN?: string | string[];
}

function factsOf(socket: TLSSocket): TlsFacts {
  const certificate = socket.getPeerCertificate();
  const issuer: Name = certificate.issuer ?? {};
  const subject: Name = certificate.subject ?? {};
  return {
    protocol: socket.getProtocol() ?? 'unknown',
    issuer: first(issuer.O) ?? first(issuer.CN) ?? null,
    subject: first(subject.CN) ?? first(subject.O) ?? null,
    validFrom: seconds(certificate.valid_from),
    validTo: seconds(certificate.valid_to),
  };
}

function first(value: string | string[] | undefined): string | undefined {
  return (Array.isArray(value) ? value[0] : value)?.slice(0, MAX_NAME).toWellFormed();
}

function seconds(date: string): number | null {
  const ms = Date.parse(date);
  return Number.isNaN(ms) ? null : Math.floor(ms / 1000);
}

/** The steps of one hop. `request` lasts from the request to the headers of its answer. */
type Phase = 'dns' | 'connect' | 'tls' | 'request';

export interface Hop {
  readonly url: string;
  readonly status: number;
  readonly latencyMs: number;
}

export interface Reached {
  readonly url: string;
  /** The step during which it failed; null when it failed between two hops. */
  readonly phase: Phase | null;
  /** Milliseconds of that hop's steps, the last one until the failure; null for one not reached or not needed. */
  readonly phaseMs: Readonly<Record<Phase, number | null>>;
  readonly hops: readonly Hop[];
  readonly totalMs: number;
  readonly tls: TlsFacts | null;
  /** OpenSSL's name of the certificate's fault; null when there is none, or when it was not seen. */
  readonly certificateFault: string | null;
}

/** Notes how far a visit gets while it goes on: one that runs out of time is abandoned, and says nothing any more. */
export interface Progress {
  /** A hop begins; facts about the hop before it are dropped. */
  startHop(url: string): void;
  enter(phase: Phase): void;
  answered(): void;
  followed(hop: Hop): void;
  secured(tls: TlsFacts, certificateFault: string | null): void;
  reached(): Reached;
}

export function createProgress(start: string): Progress {
  let startedMs: number | null = null;
  const hops: Hop[] = [];
  let url = start;
  let entered: { phase: Phase; atMs: number }[] = [];
  let answeredMs: number | null = null;
  let tls: TlsFacts | null = null;
  let certificateFault: string | null = null;
  return {
    startHop(next) {
      url = next;
      startedMs ??= performance.now();
      entered = [];
      answeredMs = null;
      tls = null;
      certificateFault = null;
    },
    enter(phase) {
      entered.push({ phase, atMs: performance.now() });
    },
    answered() {
      answeredMs = performance.now();
    },
    followed(hop) {
      hops.push(hop);
    },
    secured(facts, fault) {
      tls = facts;
      certificateFault = fault;
    },
    reached() {
      const nowMs = performance.now();
      const phaseMs: Record<Phase, number | null> = { dns: null, connect: null, tls: null, request: null };
      for (const [index, { phase, atMs }] of entered.entries())
        phaseMs[phase] = (entered[index + 1]?.atMs ?? answeredMs ?? nowMs) - atMs;
      const phase = answeredMs === null ? (entered.at(-1)?.phase ?? null) : null;
      return { url, phase, phaseMs, hops: [...hops], totalMs: nowMs - (startedMs ?? nowMs), tls, certificateFault };
    },
  };
}
