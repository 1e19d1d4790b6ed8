import { parentPort, workerData } from 'node:worker_threads';
import type { Hex } from 'viem';
import { createRpc } from '../../../dev/miner.ts';
import { createSdkFacilitator } from '../sdk-facilitator.ts';
import { ok, serveJson } from './json-http.ts';
import { startProvider } from './providers.ts';
import { flipWallets } from './wallets.ts';

// Somebody else's facilitator: the SDK's own, with a node that has no limit, in a thread of its own.

/** What the thread is given. */
export interface FacilitatorOptions {
  readonly rpcUrl: string;
  readonly chainId: number;
  readonly multicall3: Hex;
  /** Of an account that holds gas. */
  readonly key: Hex;
}

const { rpcUrl, ...options }: FacilitatorOptions = workerData;
const rpc = createRpc(rpcUrl);
const onSend = (raw: string) => flipWallets(rpc, raw);
const node = await startProvider({ target: rpcUrl, perSecond: Number.POSITIVE_INFINITY, refusal: '429', onSend });
const sdk = createSdkFacilitator({ ...options, rpcUrl: node.url, pollMs: 200 });
const server = await serveJson(async ({ url, text }) => {
  if (url.pathname === '/supported') return ok(sdk.getSupported());
  if (url.pathname !== '/settle') return { status: 404, text: '{}' };
  const { paymentPayload, paymentRequirements } = JSON.parse(text);
  return ok(await sdk.settle(paymentPayload, paymentRequirements));
});
parentPort?.postMessage(server.url);
