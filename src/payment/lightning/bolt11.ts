/** A BOLT11 invoice as the scheme reads it. */
export interface Invoice {
  readonly currency: 'bc' | 'tb' | 'bcrt' | 'tbs';
  readonly amountMsat: bigint;
  /** Unix seconds. */
  readonly createdAt: number;
  /** Seconds; 3600 where the invoice does not say. */
  readonly expirySeconds: number;
  /** 32 bytes. */
  readonly paymentHash: Uint8Array;
  /** Each `h` field, 32 bytes; step 5 of the scheme wants exactly one. */
  readonly descriptionHashes: readonly Uint8Array[];
  /** Whether it also has an inline description (`d`). */
  readonly hasDescription: boolean;
  /** The key that signed it: 33 bytes, compressed. */
  readonly payee: Uint8Array;
}

/** Strictly decodes an invoice and verifies or recovers its signature; null for whatever is not exactly BOLT11 as the scheme demands. Never throws. */
export function decodeInvoice(_text: unknown): Invoice | null {
  throw new Error('not written yet');
}
