import { afterEach, expect, test } from 'vitest';
import { readLatestHeader } from '../../../src/chain/block.ts';
import { readFeeWindow } from '../../../src/chain/fee-history.ts';
import { createChainClient, type OpenChainClient } from '../../../src/chain/rpc/client.ts';
import { UpstreamFailed } from '../../../src/errors.ts';
import { type RpcServer, startRpcServer } from '../../support/chain/rpc-server.ts';

const hex = (value: number) => `0x${value.toString(16)}`;
/** The base fee of block n is n wei, so that a window shows which blocks it holds. */
const header = (number: number, at: number) => ({
  number: hex(number),
  hash: `0x${'0'.repeat(64)}`,
  timestamp: hex(at),
  gasUsed: '0x0',
  gasLimit: '0x1',
  extraData: '0x',
  baseFeePerGas: hex(number),
  transactions: [],
});

const open: (RpcServer | OpenChainClient)[] = [];
afterEach(async () => {
  for (const part of open.splice(0)) await ('close' in part ? part.close() : part.stop());
});

async function chainOf(start: number, blocksPerSecond: number) {
  const state = { head: start };
  const node = await startRpcServer({
    eth_getBlockByNumber: ([block]) => {
      const number = block === 'latest' ? state.head : Number(block);
      return number > state.head ? null : header(number, 1_000_000 + Math.floor(number / blocksPerSecond));
    },
    eth_feeHistory: ([count, newest]) => {
      const oldest = Number(newest) - Number(count) + 1;
      return {
        oldestBlock: hex(oldest),
        baseFeePerGas: Array.from({ length: Number(count) + 1 }, (_, at) => hex(oldest + at)),
      };
    },
  });
  const chain = createChainClient({ rpcUrls: [node.url], chainId: 5042, timeoutMs: 10_000 });
  open.push(chain, node);
  const read = async () => readFeeWindow(chain, await readLatestHeader(chain, {}), 3600, {});
  return { node, state, chain, read };
}

test('on half-second blocks the last hour is 7,200 blocks, in one batch of at most nine spans', async () => {
  const { node, read } = await chainOf(100_000, 2);
  const { fees, toBlock, seconds } = await read();
  expect(toBlock).toBe(100_000);
  expect(seconds).toBe(3600);
  expect(Math.abs(fees.length - 7200)).toBeLessThanOrEqual(4);
  expect(fees.at(-1)).toBe(100_000n);
  expect(fees[0]).toBe(BigInt(100_001 - fees.length));
  expect(node.bodies.filter(Array.isArray)).toHaveLength(1);
  expect(node.count('eth_feeHistory')).toBe(9);
});

test('finished spans are not read again', async () => {
  const { node, state, read } = await chainOf(100_000, 2);
  await read();
  state.head += 10;
  const { fees } = await read();
  expect(fees.at(-1)).toBe(100_010n);
  expect(node.count('eth_feeHistory')).toBe(10);
});

test('on a young chain the window holds all blocks that exist', async () => {
  const { read } = await chainOf(120, 2);
  const { fees, seconds } = await read();
  expect(fees).toHaveLength(121);
  expect(seconds).toBe(60);
});

test('on a chain of one block the window holds that block', async () => {
  const { read } = await chainOf(0, 2);
  expect(await read()).toEqual({ fees: [0n], toBlock: 0, seconds: 0 });
});

test('on a faster chain the window holds nine spans, and reports how many seconds they cover', async () => {
  const { read } = await chainOf(100_000, 10);
  const { fees, seconds } = await read();
  expect(fees.length).toBeGreaterThan(8000);
  expect(seconds).toBeLessThan(925);
});

test('on a slow chain the window holds only the last hour', async () => {
  const { read } = await chainOf(50_000, 0.1);
  expect(Math.abs((await read()).fees.length - 360)).toBeLessThanOrEqual(2);
});

test('a history of other blocks than asked for, or none, is an upstream failure', async () => {
  const { node, read } = await chainOf(500, 2);
  node.methods.eth_feeHistory = () => ({ oldestBlock: '0x0', baseFeePerGas: ['0x1', '0x1'] });
  await expect(read()).rejects.toBeInstanceOf(UpstreamFailed);
  node.methods.eth_feeHistory = () => ({ oldestBlock: '0x0', baseFeePerGas: [] });
  await expect(read()).rejects.toBeInstanceOf(UpstreamFailed);
  delete node.methods.eth_feeHistory;
  await expect(read()).rejects.toBeInstanceOf(UpstreamFailed);
});
