/** The invoice that a node is asked to make. */
export interface InvoiceOrder {
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
