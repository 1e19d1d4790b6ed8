import type { RemoteFacilitatorConfig } from '../../../config/rails.ts';
import type { Config } from '../../../config.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { Upstreams } from '../../../upstream/client/http.ts';
import { createCircleFacilitator } from './circle.ts';
import { createHttpFacilitator, type FacilitatorClient, REMOTE_BOUNDS } from './client.ts';
import { createSellerProof } from './seller-proof.ts';

interface FacilitatorOptions {
  config: Pick<Config, 'network' | 'seller' | 'settleWaitMs'>;
  outgoing: { readonly upstreams: Upstreams; readonly userAgent: string };
  clock: Clock;
}

/**
 * Opens the client of the configured facilitator. Throws when the key for seller proofs is not the seller's, because the facilitator would then
 * settle no payment.
 */
export function openFacilitator(
  { mode, url, token, sellerKey, timeoutMs }: RemoteFacilitatorConfig,
  { config, outgoing, clock }: FacilitatorOptions,
): FacilitatorClient {
  const network = config.network.caip2;
  if (mode === 'x402') return createHttpFacilitator({ url, token, timeoutMs, network, userAgent: outgoing.userAgent });
  const proof = sellerKey && createSellerProof({ key: sellerKey, network, clock });
  if (proof && proof.payTo !== config.seller.toLowerCase())
    throw new Error('REMOTE_FACILITATOR_SELLER_KEY is not the key of SELLER_ADDRESS');
  const auth = proof ? { proof } : { token: token ?? '' };
  const upstream = outgoing.upstreams.open({ name: 'facilitator', timeoutMs, ...REMOTE_BOUNDS });
  return createCircleFacilitator({ upstream, url, auth, network, clock, pendingMs: config.settleWaitMs });
}
