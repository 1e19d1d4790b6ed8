import { afterAll, beforeAll } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { ofNow } from '../ledger/ledger-adapters.ts';
import { type GatewayStandIn, startGatewayStandIn } from './gateway-stand-in.ts';

/** The Gateway Wallet of the stand-in: the contract that payers sign for. */
export const GATEWAY_WALLET = `0x${'77'.repeat(20)}` as const;

/** An embedded network with a stand-in of the Gateway, for the tests of one file. Both are there from the first test to the last. */
export function withGatewayNetwork() {
  let network: EmbeddedNetwork;
  let gateway: GatewayStandIn;
  beforeAll(async () => {
    network = await startEmbeddedNetwork();
    gateway = await startGatewayStandIn(network.chainId, GATEWAY_WALLET);
  });
  afterAll(async () => {
    await gateway?.stop();
    await network?.stop();
  });
  return {
    network: ofNow(() => network),
    gateway: ofNow(() => gateway),
    /** The environment of a service that sells over this Gateway too. */
    gatewayEnv: () => ({ GATEWAY: 'on', GATEWAY_URL: gateway.url, GATEWAY_WALLET_ADDRESS: GATEWAY_WALLET }),
  };
}
