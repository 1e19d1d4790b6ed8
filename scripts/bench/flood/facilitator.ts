import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { LoopbackServer } from '../../../dev/lightning/lnd-rest.ts';
import { createAccount, type EmbeddedNetwork } from '../../../dev/network.ts';
import type { FacilitatorOptions } from './facilitator-worker.ts';

/** Starts the SDK's facilitator over the embedded network, in a thread of its own. */
export async function startFacilitator(network: EmbeddedNetwork): Promise<LoopbackServer> {
  const { rpcUrl, chainId, multicall3 } = network;
  const account = createAccount();
  await network.fundNative(account.address, 10n ** 21n);
  const workerData: FacilitatorOptions = { rpcUrl, chainId, multicall3, key: account.privateKey };
  const worker = new Worker(new URL('./facilitator-worker.ts', import.meta.url), { workerData });
  const [url] = await once(worker, 'message');
  return {
    url: String(url),
    stop: async () => {
      await worker.terminate();
    },
  };
}
