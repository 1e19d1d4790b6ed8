/** A wallet that pays for the buyer. Its results are untrusted until they were checked against the payment hash. */
export interface LightningPayer {
  /** Shown to people. */
  readonly name: string;
  /** Whether it takes a limit of the network's fee. */
  readonly limitsFee: boolean;
  /**
   * Pays an invoice and returns the preimage, unchecked. Throws NotPaid when nothing was paid for certain.
   * After any other error the outcome is not known.
   */
  pay(invoice: string, terms: PayTerms): Promise<unknown>;
  /**
   * The preimage of an earlier payment; never pays a second time. Null when the payer is certain that no payment of
   * this
   * hash has been made or is under way. Throws when the outcome is not known.
   */
  find(invoice: string, paymentHash: string): Promise<unknown>;
  close(): void;
}

interface PayTerms {
  /** The most that the network may charge for the payment, for payers that take such a limit. */
  readonly feeLimitMsat: bigint;
}

/** Thrown when the payer is certain that nothing was paid. So another attempt cannot pay twice. */
export class NotPaid extends Error {
  constructor(detail: string) {
    super(detail);
    this.name = 'NotPaid';
  }
}
