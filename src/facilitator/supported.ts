import { LIGHTNING_NETWORKS } from '../payment/lightning/terms.ts';

/** x402's list of what the facilitator settles: one kind per network, with the method and the flow that a requirement's `extra` must name. */
export const SUPPORTED = {
  kinds: LIGHTNING_NETWORKS.map(({ id }) => ({
    x402Version: 2,
    scheme: 'exact',
    network: id,
    extra: { assetTransferMethod: 'bolt11', paymentFlow: 'upfront' },
  })),
  extensions: [] as string[],
  signers: {} as Record<string, string[]>,
};
