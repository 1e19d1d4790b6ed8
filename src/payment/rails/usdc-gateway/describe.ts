import type { RailInfo } from '../../rail.ts';
import { GATEWAY_REFUSALS } from './refusal-sentences.ts';
import { gatewayRequirement } from './requirement.ts';

/** Circle's Gateway. It is one of several ways to pay, so a fault of its service is only shown. */
export const gatewayInfo: RailInfo = {
  name: 'usdc-gateway',
  isOn: ({ gateway }) => gateway !== null,
  contract: ({ rails }) => rails.gateway?.wallet ?? null,
  entry: (plain, { gateway }) => {
    if (!gateway) throw new Error('the Gateway is off');
    return gatewayRequirement(plain, gateway.wallet);
  },
  refusals: GATEWAY_REFUSALS,
  service: ({ gateway }) => gateway && { name: 'gateway', isVital: false },
};
