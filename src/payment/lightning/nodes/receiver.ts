import { z } from 'zod';
import { UpstreamFailed } from '../../../errors.ts';
import type { Upstream, UpstreamRequest } from '../../../upstream/client/client.ts';
import { parseJson } from '../../../upstream/client/exchange.ts';

/** The invoice that a node is asked to make. */
interface InvoiceOrder {
  readonly amountMsat: bigint;
  /** The canonical JSON of the binding; its SHA-256 is the invoice's description hash. Core Lightning wants the text and hashes it itself. */
  readonly binding: string;
  /** 32 bytes. */
  readonly requestHash: Uint8Array;
  readonly expirySeconds: number;
  /** Unique, and unrelated to the request. Some nodes require one. */
  readonly label: string;
}

/**
 * A Lightning node that receives payments. Its answers are untrusted until issuer.ts has checked them. Every method throws UpstreamFailed or
 * Unavailable when the node is away or refuses.
 */
export interface Receiver {
  readonly kind: 'lnd' | 'cln' | 'phoenixd' | 'nwc';
  /** The node's compressed public key, 66 lower-case hex characters. */
  nodeKey(signal: AbortSignal): Promise<string>;
  /** Warnings for the operator about this connection's permissions. Throws TooMuchPower when the service must not run with it. */
  inspect(signal: AbortSignal): Promise<readonly string[]>;
  /** The BOLT11 text of a fresh invoice. */
  createInvoice(order: InvoiceOrder, signal: AbortSignal): Promise<string>;
  /** Whether the node itself has received the payment. Asked only where other parties share the node's key. */
  isPaid(paymentHash: Uint8Array, signal: AbortSignal): Promise<boolean>;
  close(): Promise<void>;
}

/** The node says that the connection may do more than receive. */
export class TooMuchPower extends Error {
  constructor(detail: string) {
    super(detail);
    this.name = 'TooMuchPower';
  }
}

/**
 * Returns 2xx JSON of the expected shape. Throws UpstreamFailed otherwise. Refused credentials have a message of their own that names what they
 * `need`, because only the operator can correct that. The node's own text is never passed on, because it may repeat what we sent.
 */
export async function askNode<T>(
  upstream: Upstream,
  request: UpstreamRequest,
  schema: z.ZodType<T>,
  need: string,
): Promise<T> {
  const { status, headers, body } = await upstream.fetch(request);
  // LND answers a missing permission with 500 and a text.
  const denied =
    status === 401 || status === 403 || (status >= 400 && /permission denied/i.test(body.toString('utf8')));
  if (denied) throw new UpstreamFailed(upstream.name, `our credentials are not accepted; they need ${need}`);
  if (status < 200 || status > 299) throw new UpstreamFailed(upstream.name, `answered HTTP ${status}`);
  return parseJson(upstream.name, headers['content-type'], body, schema);
}

/** Computes waits that double from `firstMs` to `longestMs`, until a success resets them. */
export function createBackOff(firstMs: number, longestMs: number) {
  let failures = 0;
  return {
    /** How long to wait after one more failure, in milliseconds. */
    failed(): number {
      const waitMs = Math.min(longestMs, firstMs * 2 ** failures);
      failures += 1;
      return waitMs;
    },
    succeeded(): void {
      failures = 0;
    },
  };
}

/** A compressed public key as every node writes it. */
export const nodeKeyText = z.string().regex(/^0[23][0-9a-f]{64}$/);

/** A node's invoice text. Its length is bounded here; the issuer decodes it strictly. */
export const invoiceText = z.string().min(1).max(4096);
