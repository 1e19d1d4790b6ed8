import { createHash, randomBytes } from 'node:crypto';
import secp256k1 from 'secp256k1';
import { MAINNET } from '../../../src/payment/lightning/terms.ts';
import { type InvoiceTerms, invoiceOf } from './encode-invoice.ts';

const sha256 = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest();

/** The body of a settle call for one paid invoice, with the data that only its buyer knows. */
export interface LightningProof {
  readonly body: {
    readonly x402Version: 2;
    readonly paymentPayload: { x402Version: 2; accepted: Requirement; payload: { preimage: string } };
    readonly paymentRequirements: Requirement;
  };
  readonly preimage: string;
  readonly paymentHash: string;
}

interface Requirement {
  scheme: string;
  network: string;
  asset: string;
  amount: string;
  payTo: string;
  maxTimeoutSeconds: number;
  extra: Record<string, unknown>;
}

interface ProofOf {
  /** Of the seller's node. */
  readonly privateKey?: Uint8Array;
  readonly preimage?: Uint8Array;
  /** Unix seconds. */
  readonly createdAt: number;
  readonly maxTimeoutSeconds?: number;
  readonly amountMsat?: bigint;
  /** Overrides, for an invoice that differs from what its seller requires. */
  readonly invoice?: Partial<InvoiceTerms>;
}

/** A paid invoice of a seller's node, in the form in which its seller presents it to the facilitator. Everything is real except the payment. */
export function lightningProof(of: ProofOf): LightningProof {
  const { privateKey = sha256('a seller'), preimage = randomBytes(32), createdAt } = of;
  const { maxTimeoutSeconds = 300, amountMsat = 25_000n } = of;
  const paymentHash = sha256(preimage);
  const requestHash = sha256(paymentHash);
  const invoice = invoiceOf({
    privateKey,
    currency: MAINNET.currency,
    amountMsat,
    createdAt,
    expirySeconds: maxTimeoutSeconds,
    paymentHash,
    descriptionHash: requestHash,
    ...of.invoice,
  });
  const requirement = {
    scheme: 'exact',
    network: MAINNET.id,
    asset: 'BTC',
    amount: String(amountMsat),
    payTo: Buffer.from(secp256k1.publicKeyCreate(privateKey)).toString('hex'),
    maxTimeoutSeconds,
    extra: {
      assetTransferMethod: 'bolt11',
      paymentFlow: 'upfront',
      invoice,
      requestHash: requestHash.toString('hex'),
      requestBindingProfile: 'http:1',
      requestBindingParams: { headers: [] },
    },
  };
  const secret = Buffer.from(preimage).toString('hex');
  return {
    body: {
      x402Version: 2,
      paymentPayload: { x402Version: 2, accepted: structuredClone(requirement), payload: { preimage: secret } },
      paymentRequirements: requirement,
    },
    preimage: secret,
    paymentHash: paymentHash.toString('hex'),
  };
}
