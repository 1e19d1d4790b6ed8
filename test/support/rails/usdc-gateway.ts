import { decoded } from '../usdc/buyer.ts';
import { signForGateway } from '../usdc/gateway-payment.ts';
import { startGatewayStandIn } from '../usdc/gateway-stand-in.ts';
import { newKey, type Requirement } from '../usdc/payments.ts';
import { FUNDS, hangAt, signedRail } from './signed-rail.ts';
import { usdcPayment } from './usdc-payment.ts';

const WALLET = `0x${'77'.repeat(20)}` as const;

/** `usdc-gateway`, settled by the stand-in of Circle's Gateway. */
export const usdcGateway = signedRail('usdc-gateway', async (network) => {
  const gateway = await startGatewayStandIn(network.chainId, WALLET);
  const settlesAsked = () => gateway.asked.filter(({ path }) => path === '/v1/x402/settle').length;
  return {
    env: {
      GATEWAY: 'on',
      GATEWAY_URL: gateway.url,
      GATEWAY_WALLET_ADDRESS: WALLET,
      GATEWAY_TIMEOUT_MS: '60000',
    },
    secrets: [],
    pay: async (challenge, wrong) => {
      const { privateKey, address } = newKey();
      if (wrong !== 'without the money') gateway.deposit(address, FUNDS);
      const { accepts } = decoded(challenge, 'payment-required') as { accepts: Requirement[] };
      const requirement = accepts.find(({ extra }) => extra.verifyingContract === WALLET)!;
      return usdcPayment(
        { requirement, wrong, sign: (changes) => signForGateway(privateKey, requirement, WALLET, changes) },
        {
          balance: async () => gateway.depositOf(address),
          add: async (units) => gateway.deposit(address, units),
        },
      );
    },
    hang: async () => hangAt({ hold: gateway.hold, asked: settlesAsked }),
    evidenceOf: async ({ transaction }) => {
      const transfer = gateway.transfers().find(({ id }) => id === transaction);
      return BigInt(transfer?.amount ?? 0);
    },
    close: gateway.stop,
  };
});
