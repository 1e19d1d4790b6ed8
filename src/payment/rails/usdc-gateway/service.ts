import type { GatewayConfig } from '../../../config/rails.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { Upstreams } from '../../../upstream/client/http.ts';
import type { Authorization } from '../../authorization.ts';
import { REMOTE_BOUNDS } from '../../settlers/facilitator/client.ts';
import { settleRequest } from '../../settlers/facilitator/request.ts';
import { createGatewaySignatureCheck } from './checks.ts';
import { createGatewayClient } from './client.ts';
import { createGatewayEvidence } from './evidence.ts';
import { gatewayExtra } from './requirement.ts';

interface OpenGatewayOptions {
  network: { readonly caip2: `eip155:${number}`; readonly usdc: `0x${string}` };
  publicOrigin: string;
  upstreams: Upstreams;
  clock: Clock;
}

/** Opens the Gateway for both parts of a sale: the serving process asks it before the handler runs, the settling process afterwards. */
export function openGateway({ url, token, wallet, timeoutMs }: GatewayConfig, options: OpenGatewayOptions) {
  const { network, publicOrigin, upstreams, clock } = options;
  const { caip2, usdc } = network;
  const upstream = upstreams.open({ name: 'gateway', timeoutMs, ...REMOTE_BOUNDS });
  const client = createGatewayClient({ upstream, url, token, network: caip2 });
  const extra = gatewayExtra(wallet);
  const terms = { network: caip2, usdc, extra, publicOrigin };
  return {
    client,
    wallet,
    extra,
    evidence: createGatewayEvidence(client, caip2, clock),
    /** Throws PaymentRefused unless the payer signed for the Gateway Wallet. */
    checkSignature: createGatewaySignatureCheck(Number(caip2.split(':')[1]), wallet),
    /** The Gateway's reason against a payment's form, or null. The balance is read separately. */
    verify: (authorization: Authorization, signal: AbortSignal): Promise<string | null> =>
      client.verify(settleRequest(authorization, terms), signal),
  };
}

export type OpenGateway = ReturnType<typeof openGateway>;
