import { x402Facilitator } from '@x402/core/facilitator';
import { type FacilitatorClient, x402ResourceServer } from '@x402/core/server';
import { toFacilitatorEvmSigner } from '@x402/evm';
import { ExactEvmScheme as FacilitatorScheme } from '@x402/evm/exact/facilitator';
import { ExactEvmScheme as ServerScheme } from '@x402/evm/exact/server';
import { paymentMiddleware } from '@x402/express';
import express from 'express';
import { createPublicClient, createWalletClient, defineChain, type Hex, http, nonceManager, publicActions } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';

// What a seller gets from the SDK: its Express middleware with its facilitator in the same process, one relayer key with viem's
// nonce manager (without it parallel settlements collide) and 200 ms polling (viem's default of 4 s would be unfair).
const { PORT, RPC_URL = '', RELAYER_KEY = '', SELLER = '', USDC = '' } = process.env;
const network = 'eip155:5042';
const chain = defineChain({
  id: 5042,
  name: 'embedded',
  nativeCurrency: { name: 'USDC', symbol: 'USDC', decimals: 18 },
  rpcUrls: { default: { http: [RPC_URL] } },
  contracts: { multicall3: { address: '0xcA11bde05977b3631167028862bE2a173976CA11' } },
});
const account = privateKeyToAccount(RELAYER_KEY as Hex, { nonceManager });
const transport = http(RPC_URL);
const wallet = createWalletClient({ account, chain, transport, pollingInterval: 200 }).extend(publicActions);
const reader = createPublicClient({ chain, transport, pollingInterval: 200 });
const signer = toFacilitatorEvmSigner({
  address: account.address,
  readContract: (args) => reader.readContract(args as never),
  verifyTypedData: (args) => reader.verifyTypedData(args as never),
  writeContract: (args) => wallet.writeContract(args as never),
  sendTransaction: (args) => wallet.sendTransaction(args as never),
  waitForTransactionReceipt: (args) => reader.waitForTransactionReceipt(args),
  getCode: (args) => reader.getCode(args),
});
const facilitator = new x402Facilitator().register(network, new FacilitatorScheme(signer));
const client: FacilitatorClient = {
  verify: (payload, requirements) => facilitator.verify(payload, requirements),
  settle: (payload, requirements) => facilitator.settle(payload, requirements),
  getSupported: async () => facilitator.getSupported() as Awaited<ReturnType<FacilitatorClient['getSupported']>>,
};
const server = new x402ResourceServer(client).register(network, new ServerScheme());
const price = { asset: USDC, amount: '500', extra: { name: 'USDC', version: '2' } };
const accepts = { scheme: 'exact', network, payTo: SELLER, price, maxTimeoutSeconds: 604_900 } as const;

const app = express();
app.use(
  paymentMiddleware({ 'GET /paid': { accepts, description: 'A paid answer', mimeType: 'application/json' } }, server),
);
app.get('/paid', (_request, response) => {
  response.json({ gas: 21_000, baseFeeGwei: '20', costUsdc: '0.00042' });
});
app.listen(Number(PORT), '127.0.0.1');
