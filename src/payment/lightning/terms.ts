import type { BindingTerms, RequestBinding } from './binding.ts';

// What must be paid for a request over Lightning, and on which network.

/** How long an invoice is valid; `GET /v1/lightning` promises it. */
export const INVOICE_SECONDS = 300;
/** The scheme's tolerance between two clocks. */
export const SKEW_SECONDS = 60;

/** The requirement of a 402, as on the wire. `amount` is in millisatoshis. */
interface LightningRequirement {
  readonly scheme: 'exact';
  readonly network: string;
  readonly amount: string;
  readonly asset: 'BTC';
  readonly payTo: string;
  readonly maxTimeoutSeconds: number;
  readonly extra: {
    readonly assetTransferMethod: 'bolt11';
    readonly paymentFlow: 'upfront';
    readonly invoice: string;
    readonly requestHash: string;
    readonly requestBindingProfile: BindingTerms['profile'];
    readonly requestBindingParams: BindingTerms['params'];
  };
}

interface TermsOf {
  readonly network: string;
  readonly amountMsat: bigint;
  /** The node's compressed key, 66 hex characters. */
  readonly payTo: string;
  readonly binding: RequestBinding;
  readonly invoice: string;
}

/** Made again for each presentation from our own record and the request that will run, never from what comes back. */
export function lightningRequirement({ network, amountMsat, payTo, binding, invoice }: TermsOf): LightningRequirement {
  return {
    scheme: 'exact',
    network,
    amount: amountMsat.toString(),
    asset: 'BTC',
    payTo,
    maxTimeoutSeconds: INVOICE_SECONDS,
    extra: {
      assetTransferMethod: 'bolt11',
      paymentFlow: 'upfront',
      invoice,
      requestHash: Buffer.from(binding.hash).toString('hex'),
      requestBindingProfile: binding.profile,
      requestBindingParams: binding.params,
    },
  };
}

/** A network of the scheme: `lnbtc:` and the first 16 bytes of its genesis block's hash, in hex. */
export interface LightningNetwork {
  readonly id: `lnbtc:${string}`;
  readonly currency: 'bc' | 'tb';
}

export const MAINNET: LightningNetwork = { id: 'lnbtc:000000000019d6689c085ae165831e93', currency: 'bc' };
export const TESTNET: LightningNetwork = { id: 'lnbtc:000000000933ea01ad0ee984209779ba', currency: 'tb' };

export const LIGHTNING_NETWORKS: readonly LightningNetwork[] = [MAINNET, TESTNET];

/** Compared as a whole, so `constructor` is unknown too. */
export function lightningNetwork(id: unknown): LightningNetwork | null {
  return LIGHTNING_NETWORKS.find((network) => network.id === id) ?? null;
}

export const LNBTC_SPEC_URL =
  'https://github.com/x402-foundation/x402/blob/main/specs/schemes/exact/scheme_exact_lnbtc.md';
