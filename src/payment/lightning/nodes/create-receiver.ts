import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Config } from '../../../config.ts';
import type { Upstream, Upstreams } from '../../../upstream/client/client.ts';
import { createCln } from './cln.ts';
import { createLnd } from './lnd.ts';
import { createNwc } from './nwc.ts';
import { createPhoenixd } from './phoenixd.ts';
import type { Receiver } from './receiver.ts';

// Opens the configured node. Sends no request.

/** The largest answer, LND's getinfo, has several KiB. */
const MAX_BYTES = 256 * 1024;
/** A node makes an invoice in milliseconds. More requests at once would only queue there. */
const CONCURRENCY = 8;

/** Null where no node is configured. Throws when the configured certificate cannot be used. */
export function createReceiver({ receiver, timeoutMs }: Config['lightning'], upstreams: Upstreams): Receiver | null {
  if (receiver === null) return null;
  const open = (ca: string | null): Upstream =>
    upstreams.open({
      name: receiver.kind,
      timeoutMs,
      maxBytes: MAX_BYTES,
      concurrency: CONCURRENCY,
      // The issuer handles failures and waits before it asks again.
      retries: 0,
      ...(ca === null ? {} : { ca }),
    });
  switch (receiver.kind) {
    case 'lnd':
      return createLnd({ ...receiver, upstream: open(certificate(receiver.tlsCertFile)) });
    case 'cln':
      return createCln({ ...receiver, upstream: open(certificate(receiver.tlsCertFile)) });
    case 'phoenixd':
      return createPhoenixd({ ...receiver, upstream: open(null) });
    case 'nwc':
      return createNwc({ ...receiver, timeoutMs });
  }
}

/** Read once, at start: an operator who replaces it must restart the service. */
function certificate(file: string | null): string | null {
  if (file === null) return null;
  try {
    const pem = readFileSync(file, 'utf8');
    new X509Certificate(pem);
    return pem;
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'unreadable';
    throw new Error(`LIGHTNING_NODE_TLS_CERT: no PEM certificate can be read from ${file} (${code})`, { cause });
  }
}
