/** A wallet that pays for the buyer. Its results are untrusted until they were checked against the payment hash. */
export interface LightningPayer {
  /** Shown to people. */
  readonly name: string;
  /**
   * Pays an invoice and returns the preimage, unchecked. Throws NotPaid when nothing was paid for certain.
   * After any other error the outcome is not known.
   */
  pay(invoice: string, terms: PayTerms): Promise<unknown>;
  /** The preimage of an earlier payment; never pays. Null when the payer knows of no successful payment. Throws when the outcome is not known. */
  find(invoice: string, paymentHash: string): Promise<unknown>;
  close(): void;
}

interface PayTerms {
  /** The most that the network may charge for the payment, for payers that take such a limit. */
  readonly feeLimitMsat: bigint;
}
