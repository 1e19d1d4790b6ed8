import { afterEach, expect, test } from 'vitest';
import { type TryOutOptions, tryOperation } from '../../../../../src/payment/relayer/requests.ts';
import { newOperationJob } from '../../../../../src/payment/relayer/transactions.ts';
import { openClient } from '../../../../support/chain/client.ts';
import { RpcFault, type RpcServer, startRpcServer } from '../../../../support/chain/rpc-server.ts';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** A provider whose newest block has this number. It refuses later blocks, and the operation at blocks before `from`. */
async function provider(head: number, from: number): Promise<RpcServer> {
  const server = await startRpcServer({
    eth_blockNumber: () => `0x${head.toString(16)}`,
    eth_getBlockByNumber: ([tag]) => {
      const number = tag === 'latest' ? head : Number(tag);
      return number > head ? null : { number: `0x${number.toString(16)}`, timestamp: '0x1' };
    },
    eth_call: ([, tag]) => {
      const number = tag === 'latest' ? head : Number(tag);
      if (number > head) throw new RpcFault(-32001, `request beyond head block: requested ${number}, head ${head}`);
      if (number < from) throw new RpcFault(3, 'execution reverted: the nonce is not the next one');
      return '0x';
    },
  });
  closing.push(() => server.stop());
  return server;
}

/** Simulates an operation that was decided at block 100. The first provider is behind that. */
async function simulated(leastBlock: number | null, ...heads: number[]) {
  return trial(leastBlock, await Promise.all(heads.map((head) => provider(head, 100))));
}

async function trial(leastBlock: number | null, servers: readonly RpcServer[]) {
  const chain = openClient({ rpcUrls: servers.map(({ url }) => url), chainId: 5042, timeoutMs: 60_000 });
  closing.push(() => chain.close());
  const { signal } = new AbortController();
  const options = { chain, relayer: `0x${'77'.repeat(20)}`, signal } as unknown as TryOutOptions;
  const operation = { id: 'refund', to: Buffer.alloc(20, 1), data: Buffer.alloc(4), gas: 1n, broadcast: false };
  const job = { ...operation, readReceipt: () => null, lookUp: async () => null, note: async () => true };
  return tryOperation(options, newOperationJob({ ...job, ...(leastBlock !== null && { leastBlock }) }, 0), 1n);
}

test('an operation is simulated at its least block, by a provider that has it', async () => {
  expect(await simulated(100, 90, 101, 100)).toEqual({ result: '0x' });
});

test('an operation is refused by two providers, or not at all', async () => {
  // At the newest block of a provider that is behind, the contract refuses it.
  expect(await simulated(null, 90, 101, 100)).toEqual({ result: '0x' });
  expect(await simulated(null, 90, 91, 100)).toMatchObject({
    error: { message: expect.stringContaining('reverted') },
  });
  expect(await simulated(null, 90)).toMatchObject({ error: { message: expect.stringContaining('reverted') } });
});

test('an operation that one provider refuses while no other answers is not judged', async () => {
  const [lone, away] = await Promise.all([provider(90, 100), provider(100, 0)]);
  away.fault = '500';
  await expect(trial(null, [lone, away])).rejects.toThrow('no two providers say that an operation reverts');
});

test('an operation is simulated at the agreed head where that is later', async () => {
  expect(await simulated(0, 90, 101, 100)).toEqual({ result: '0x' });
});

test('an operation whose least block no provider has is not judged', async () => {
  await expect(simulated(100, 90, 91)).rejects.toThrow();
});
