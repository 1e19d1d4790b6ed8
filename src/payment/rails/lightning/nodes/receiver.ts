/** What a node is asked to make. */
export interface InvoiceOrder {
  readonly amountMsat: bigint;
  /** The canonical JSON of the binding; its SHA-256 is the invoice's description hash. Core Lightning wants the text and hashes it itself. */
  readonly binding: string;
  /** 32 bytes. */
  readonly requestHash: Uint8Array;
  readonly expirySeconds: number;
  /** Unique, and says nothing of the request: some nodes want one. */
  readonly label: string;
}

/**
 * A Lightning node to sell through. Whatever it returns is untrusted until it was checked (issuer.ts).
 * Every method throws UpstreamFailed or Unavailable when the node is away or says no.
 */
export interface Receiver {
  readonly kind: 'lnd' | 'cln' | 'phoenixd' | 'nwc';
  /** The node's compressed public key, 66 lower-case hex characters. */
  nodeKey(signal: AbortSignal): Promise<string>;
  /** What the operator should know of the power this connection holds; throws TooMuchPower when the service must not run with it. */
  inspect(signal: AbortSignal): Promise<readonly string[]>;
  /** The BOLT11 text of a fresh invoice. */
  createInvoice(order: InvoiceOrder, signal: AbortSignal): Promise<string>;
  /** Whether the node itself has the payment: asked only where the node's key is shared with others. */
  isPaid(paymentHash: Uint8Array, signal: AbortSignal): Promise<boolean>;
  close(): Promise<void>;
}

/** The connection may do more than receive, and the node says so. */
export class TooMuchPower extends Error {
  constructor(detail: string) {
    super(detail);
    this.name = 'TooMuchPower';
  }
}
