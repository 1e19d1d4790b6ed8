/** A Lightning network of the scheme: its identifier is `lnbtc:` and the first 16 bytes of its genesis block's hash, in hex. */
export interface LightningNetwork {
  readonly id: `lnbtc:${string}`;
  /** The currency prefix of its BOLT11 invoices. */
  readonly currency: 'bc' | 'tb';
}

export const MAINNET: LightningNetwork = { id: 'lnbtc:000000000019d6689c085ae165831e93', currency: 'bc' };
export const TESTNET: LightningNetwork = { id: 'lnbtc:000000000933ea01ad0ee984209779ba', currency: 'tb' };

/** Every network that the scheme knows. */
export const LIGHTNING_NETWORKS: readonly LightningNetwork[] = [MAINNET, TESTNET];

/** The network with this identifier, or null. The identifier is compared as a whole, so `constructor` is unknown too. */
export function lightningNetwork(id: unknown): LightningNetwork | null {
  return LIGHTNING_NETWORKS.find((network) => network.id === id) ?? null;
}

/** The scheme's page in the x402 foundation's repository. */
export const LNBTC_SPEC_URL =
  'https://github.com/x402-foundation/x402/blob/main/specs/schemes/exact/scheme_exact_lnbtc.md';
