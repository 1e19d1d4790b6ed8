import { z } from 'zod';
import { UpstreamFailed } from '../../../errors.ts';
import type { Upstream, UpstreamRequest } from '../../../upstream/client/client.ts';
import { parseJson } from '../../../upstream/client/exchange.ts';

// The port to a Lightning node that receives payments, and what all nodes share. Answers are untrusted until issuer.ts
// has checked them. Every method throws UpstreamFailed or Unavailable when the node is away or refuses.

interface NewInvoice {
  readonly amountMsat: bigint;
  /** Canonical JSON. Its SHA-256 is the invoice's description hash; Core Lightning hashes the text itself. */
  readonly binding: string;
  /** 32 bytes. */
  readonly requestHash: Uint8Array;
  readonly expirySeconds: number;
  /** Unique, and unrelated to the request. Some nodes require one. */
  readonly label: string;
}

export interface Receiver {
  readonly kind: 'lnd' | 'cln' | 'phoenixd' | 'nwc';
  /** Compressed, 66 lower-case hex characters. */
  nodeKey(signal: AbortSignal): Promise<string>;
  /** Warnings about this connection's permissions. Throws TooMuchPower when the service must not run with it. */
  inspect(signal: AbortSignal): Promise<readonly string[]>;
  createInvoice(invoice: NewInvoice, signal: AbortSignal): Promise<string>;
  /** Whether the node itself has the payment. Asked only where other parties share the node's key. */
  isPaid(paymentHash: Uint8Array, signal: AbortSignal): Promise<boolean>;
  close(): Promise<void>;
}

/** The connection may do more than receive. */
export class TooMuchPower extends Error {
  constructor(detail: string) {
    super(detail);
    this.name = 'TooMuchPower';
  }
}

/** 2xx JSON of this shape. Throws UpstreamFailed, for refused credentials with their `need`, never the node's text. */
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

/** Waits double from `firstMs` to `longestMs`, until a success resets them. */
export function createBackOff(firstMs: number, longestMs: number) {
  let failures = 0;
  return {
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

/** A compressed key as every node writes it. */
export const nodeKeyText = z.string().regex(/^0[23][0-9a-f]{64}$/);

/** Its length is bounded here; the issuer decodes it strictly. */
export const invoiceText = z.string().min(1).max(4096);
