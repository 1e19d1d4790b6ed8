import { afterEach, expect, test } from 'vitest';
import { readNewestHeader, readNewestNumber } from '../../../src/chain/block.ts';
import { ranked } from '../../../src/chain/rpc/client.ts';
import { openClient } from '../../support/chain/client.ts';
import { startRpcServer } from '../../support/chain/rpc-server.ts';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function startNode() {
  let head = 100;
  const node = await startRpcServer({
    eth_chainId: () => '0x13b2',
    eth_blockNumber: () => `0x${(head++).toString(16)}`,
  });
  const chain = openClient({ rpcUrls: [node.url], chainId: 5042, timeoutMs: 60_000 });
  closing.push(
    () => chain.close(),
    () => node.stop(),
  );
  return { node, chain };
}

test('answers of the same moment share one request for the newest block number, and a later one makes its own', async () => {
  const { node, chain } = await startNode();
  expect(await Promise.all([1, 2, 3].map(() => readNewestNumber(chain)))).toEqual([100, 100, 100]);
  expect(await readNewestNumber(chain)).toBe(101);
  expect(node.count('eth_blockNumber')).toBe(2);
});

test('an answer that is paid for does not share the request of one that is not', async () => {
  const { node, chain } = await startNode();
  const unpaid = ranked(chain, 'admit');
  await Promise.all([readNewestNumber(chain), readNewestNumber(unpaid)]);
  expect(node.count('eth_blockNumber')).toBe(2);
});

test('a request that failed fails for all who waited for it, and for none after that', async () => {
  const { node, chain } = await startNode();
  const { eth_blockNumber: answer } = node.methods;
  node.methods.eth_blockNumber = () => 'no number';
  const failed = await Promise.allSettled([readNewestNumber(chain), readNewestNumber(chain), readNewestHeader(chain)]);
  expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  expect(node.count('eth_blockNumber')).toBe(1);
  if (answer) node.methods.eth_blockNumber = answer;
  expect(await readNewestNumber(chain)).toBe(100);
});
