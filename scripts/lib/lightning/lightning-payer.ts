/** Whoever pays for the buyer. What it returns is untrusted until it was checked against the payment hash. */
export interface LightningPayer {
  /** For a person. */
  readonly name: string;
  /**
   * Pays an invoice and returns what it calls the preimage. Throws NotPaid when nothing was paid for certain;
   * anything else that is thrown leaves it open.
   */
  pay(invoice: string, terms: PayTerms): Promise<unknown>;
  /** The preimage of a payment that was asked for before, and never a second payment: null when it knows of none that went through; throws when that is open. */
  find(invoice: string, paymentHash: string): Promise<unknown>;
  close(): void;
}

interface PayTerms {
  /** The most that the network may take for carrying the payment, where the payer can be told. */
  readonly feeLimitMsat: bigint;
}
