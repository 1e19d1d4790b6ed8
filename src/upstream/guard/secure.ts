import { isIP, type Socket } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { ExchangeFailed } from '../client/failure.ts';
import { opened } from './opened.ts';
import type { Progress, TlsFacts } from './progress.ts';

interface SecureOptions {
  readonly host: string;
  /** For tests only: their own certificate authority. */
  readonly ca?: string | undefined;
  readonly progress?: Progress | undefined;
}

/** Texts of a certificate are cut to this length. */
const MAX_NAME = 200;

/**
 * The TLS connection over an open one, or ExchangeFailed. Node is told not to refuse a bad certificate, because it would destroy the socket before the
 * certificate can be read, and a monitor wants to know when it expired. So the refusal is here: no byte is sent to a server that Node did not authorize.
 */
export async function secure(
  raw: Socket,
  { host, ca, progress }: SecureOptions,
  signal: AbortSignal,
): Promise<{ socket: TLSSocket; tls: TlsFacts }> {
  const socket = connect({
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

/** Why Node did not authorize the server: OpenSSL's name of the fault, or null for one that is authorized. */
function faultOf(socket: TLSSocket): string | null {
  if (socket.authorized) return null;
  // Node has the code here, where its types say an error.
  const fault: unknown = socket.authorizationError;
  return typeof fault === 'string' && /^[A-Z_]+$/.test(fault) ? fault : 'CERT_UNTRUSTED';
}

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
