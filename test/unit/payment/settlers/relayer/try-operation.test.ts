import { afterEach, expect, test } from 'vitest';
import { createChainClient } from '../../../../../src/chain/rpc/client.ts';
import { createChainCheck } from '../../../../../src/payment/evm/chain-check.ts';
import { newOperationJob } from '../../../../../src/payment/settlers/relayer/job.ts';
import { tryOperation } from '../../../../../src/payment/settlers/relayer/try-out.ts';
import { USDC } from '../../../../support/usdc/payments.ts';
import { randomOperation, startTokenNode } from '../../../../support/usdc/token-node.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function bench() {
  const node = await startTokenNode();
  const chain = createChainClient({ rpcUrls: [node.server.url], chainId: 5042, timeoutMs: 30_000 });
  closing.push(
    () => chain.close(),
    () => node.server.stop(),
  );
  const stopping = new AbortController();
  const options = { chain, usdc: USDC, relayer: USDC, signal: stopping.signal } as const;
  const job = newOperationJob(randomOperation(), 0);
  return { node, stopping, options: { ...options, check: createChainCheck(chain, USDC, () => USDC) }, job };
}

test('a simulation of an operation ends with the service, also while the node does not answer', async () => {
  const { node, stopping, options, job } = await bench();
  const asked = Promise.withResolvers<void>();
  node.server.methods.eth_call = () => {
    asked.resolve();
    return new Promise(() => {});
  };
  const trial = tryOperation(options, job, 20_000_000_000n);
  await asked.promise;
  stopping.abort(new Error('the service stops'));
  await expect(trial).rejects.toThrow();
});

test('a client that gives no outcome for a simulation is an error, and no simulation that went through', async () => {
  const { options, job } = await bench();
  const empty = { ...options.chain, batch: async () => [] };
  await expect(tryOperation({ ...options, chain: empty }, job, 1n)).rejects.toThrow('a simulation without an answer');
});
