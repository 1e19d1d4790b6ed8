import { AppError, UpstreamFailed } from '../../errors.ts';
import { orAborted } from '../../lib/tasks.ts';

/** The step at which an exchange failed. Only before a status is it certain that the server has not begun to answer. */
type FailedAt = 'connecting' | 'answering' | 'reading';

/** Its message may be published: no address or path is in it. The caller knows the upstream's name, and may repeat. */
export class ExchangeFailed extends Error {
  readonly at: FailedAt;
  /** Our side may be the cause, such as a silent resolver. Then nothing is known about the server. */
  readonly mayBeOurs: boolean;
  /** It ended before a status came, as when a server closes a kept connection just as it is used again. */
  get connectionLost(): boolean {
    return this.at === 'answering' && this.message === CONNECTION_LOST;
  }
  constructor(at: FailedAt, reason: string, cause?: unknown, { mayBeOurs = false } = {}) {
    super(reason, { cause });
    this.name = 'ExchangeFailed';
    this.at = at;
    this.mayBeOurs = mayBeOurs;
  }
}

const CONNECTION_LOST = 'the connection was lost';
const CONNECTING: Record<string, string> = {
  ECONNREFUSED: 'the connection was refused',
  ENOTFOUND: 'its host name does not resolve',
  EAI_AGAIN: 'its host name does not resolve now',
  EHOSTUNREACH: 'its host cannot be reached',
  UND_ERR_CONNECT_TIMEOUT: 'connecting timed out',
  ETIMEDOUT: 'connecting timed out',
};

/** This machine's own faults. */
const OURS: Record<string, string> = {
  ENETUNREACH: 'its network cannot be reached from here',
  EADDRNOTAVAIL: 'this service has no connection to spare',
  EMFILE: 'this service has no connection to spare',
  ENFILE: 'this service has no connection to spare',
  ENOBUFS: 'this service has no connection to spare',
};

const ANSWERING: Record<string, string> = {
  UND_ERR_HEADERS_TIMEOUT: 'timed out',
  UND_ERR_BODY_TIMEOUT: 'timed out',
  UND_ERR_HEADERS_OVERFLOW: 'its headers are too large',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'its answer was cut short',
};

/** Turns an error of undici, a socket or TLS into an ExchangeFailed. `headersSeen` says whether a status had come. */
export function describeFailure(error: unknown, headersSeen: boolean): ExchangeFailed {
  if (error instanceof ExchangeFailed) return error;
  const code = codeOf(error);
  const ours = OURS[code];
  if (ours !== undefined && !headersSeen) return new ExchangeFailed('connecting', ours, error, { mayBeOurs: true });
  const connecting = CONNECTING[code];
  if (connecting !== undefined && !headersSeen) return new ExchangeFailed('connecting', connecting, error);
  if (isCertificateFault(code)) {
    return new ExchangeFailed('connecting', `its TLS certificate is not valid (${code})`, error);
  }
  if (isHandshakeFault(code) && !headersSeen) {
    return new ExchangeFailed('connecting', `its TLS handshake failed (${code})`, error);
  }
  const known = ANSWERING[code];
  if (headersSeen) return new ExchangeFailed('reading', known ?? 'its answer was cut short', error);
  if (code.startsWith('HPE_')) return new ExchangeFailed('answering', 'its answer is no HTTP', error);
  return new ExchangeFailed('answering', known ?? CONNECTION_LOST, error);
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  if ('code' in error && typeof error.code === 'string') return error.code;
  // Node tries several addresses of a name and wraps their errors.
  return error instanceof AggregateError ? codeOf(error.errors[0]) : codeOf(error.cause);
}

/** OpenSSL's verification faults as Node names them (https://nodejs.org/api/tls.html, X509 certificate error codes). */
function isCertificateFault(code: string): boolean {
  return /^(CERT_|ERR_TLS_CERT|UNABLE_TO_|DEPTH_ZERO_SELF_SIGNED|SELF_SIGNED|INVALID_CA|HOSTNAME_MISMATCH)/.test(code);
}

/** A handshake that OpenSSL gave up: no common protocol, an alert, or an answer that is no TLS. */
function isHandshakeFault(code: string): boolean {
  return code === 'EPROTO' || code.startsWith('ERR_SSL_');
}

/** Of the failures of two addresses of one host, the more telling: the first that is not on our side. */
export function moreTelling(first: ExchangeFailed | null, second: ExchangeFailed): ExchangeFailed {
  return first === null || first.mayBeOurs ? second : first;
}

/** Node fires a timer at once when it is set further away than this. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Settles by the deadline, with ExchangeFailed, or after an abort with its reason, whatever the task does. */
export async function withinDeadline<T>(
  timeoutMs: number,
  signal: AbortSignal | undefined,
  task: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const control = new AbortController();
  const expire = () => control.abort(new ExchangeFailed('answering', 'timed out'));
  const timer = setTimeout(expire, Math.min(timeoutMs, MAX_TIMER_MS));
  const onAbort = () => control.abort(signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    return await orAborted(task(control.signal), control.signal);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
  }
}

/** The first attempt that succeeds. Only an AppError from 500 on leads to the next. UpstreamFailed names them all. */
export async function firstToAnswer<T>(what: string, attempts: readonly (() => Promise<T>)[]): Promise<T> {
  const failures: string[] = [];
  for (const attempt of attempts) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof AppError) || error.status < 500) throw error;
      failures.push(error.message);
    }
  }
  throw new UpstreamFailed(what, failures.join('; '));
}
