/** A proof that passed every check; the preimage is not in it. */
export interface Proof {
  readonly network: string;
  /** 32 bytes. */
  readonly paymentHash: Uint8Array;
  /** 33 bytes, compressed. */
  readonly payTo: Uint8Array;
  readonly amountMsat: bigint;
  /** SHA-256 of the bound request. */
  readonly requestHash: Uint8Array;
  /** The invoice's creation, Unix seconds. */
  readonly createdAt: number;
  readonly expirySeconds: number;
}

/** The scheme's own words; LnbtcReason lists all of them. */
export type ProofVerdict =
  | { readonly ok: true; readonly proof: Proof }
  | { readonly ok: false; readonly reason: string };

export interface ProofOptions {
  /** Unix seconds. */
  readonly now: number;
  /** 60 by default. */
  readonly skewSeconds?: number;
  /** The longest `maxTimeoutSeconds` that is taken; the scheme's own bound by default. */
  readonly maxTimeoutSeconds?: number;
}

/**
 * Steps 1 to 7 of the facilitator's checks, in the scheme's order: the first failure wins. Both sides are untrusted: any value at all
 * gives a verdict, never an exception. Step 8, the claim, is the store's.
 */
export function checkProof(_paymentPayload: unknown, _requirement: unknown, _options: ProofOptions): ProofVerdict {
  throw new Error('not written yet');
}
