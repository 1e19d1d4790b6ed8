import { x402Facilitator } from '@x402/core/facilitator';
import { type FacilitatorClient, x402ResourceServer } from '@x402/core/server';
import { BatchSettlementEvmScheme as FacilitatorScheme } from '@x402/evm/batch-settlement/facilitator';
import { BatchSettlementEvmScheme as ServerScheme } from '@x402/evm/batch-settlement/server';
import { paymentMiddleware } from '@x402/express';
import express from 'express';
import type { Hex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { createSdkSigner } from '../sdk-facilitator.ts';

// The SDK's Express middleware with its channels in memory and its facilitator in the same process. Polling is every 200 ms, because viem's default of
// 4 s would be unfair.
const { PORT, RPC_URL = '', RELAYER_KEY = '', AUTHORIZER_KEY = '', SELLER = '', USDC = '' } = process.env;
const network = 'eip155:5042';
const multicall3 = '0xcA11bde05977b3631167028862bE2a173976CA11';
const authorizer = privateKeyToAccount(AUTHORIZER_KEY as Hex);
const signer = createSdkSigner({ chainId: 5042, rpcUrl: RPC_URL, multicall3, key: RELAYER_KEY as Hex, pollMs: 200 });
const facilitator = new x402Facilitator().register(network, new FacilitatorScheme(signer, authorizer));
const client: FacilitatorClient = {
  verify: (payload, requirements) => facilitator.verify(payload, requirements),
  settle: (payload, requirements) => facilitator.settle(payload, requirements),
  getSupported: async () => facilitator.getSupported() as Awaited<ReturnType<FacilitatorClient['getSupported']>>,
};
const scheme = new ServerScheme(SELLER as Hex, { receiverAuthorizerSigner: authorizer, withdrawDelay: 86_400 });
const server = new x402ResourceServer(client).register(network, scheme);
const price = { asset: USDC, amount: '500', extra: { name: 'USDC', version: '2' } };
const accepts = { scheme: 'batch-settlement', network, payTo: SELLER, price, maxTimeoutSeconds: 600 } as const;

const app = express();
app.use(
  paymentMiddleware({ 'GET /paid': { accepts, description: 'A paid answer', mimeType: 'application/json' } }, server),
);
app.get('/paid', (_request, response) => {
  response.json({ gas: 21_000, baseFeeGwei: '20', costUsdc: '0.00042' });
});
app.listen(Number(PORT), '127.0.0.1');
