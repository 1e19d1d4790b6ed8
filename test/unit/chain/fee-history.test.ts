import { afterEach, expect, test } from 'vitest';
import { baseFeeOf } from '../../../src/chain/base-fee.ts';
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
  const read = async () => {
    const newest = await readLatestHeader(chain, {});
    return readFeeWindow(chain, { ...newest, baseFee: baseFeeOf(newest) }, 3600, {});
  };
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

/** Removes the newest blocks of each history that `which` accepts, as a node does whose fee history is behind its blocks. */
function omitNewest(node: RpcServer, blocks: number, which: (newest: number) => boolean) {
  const { eth_feeHistory: whole } = node.methods;
  node.methods.eth_feeHistory = (params) => {
    const history = whole?.(params) as { oldestBlock: string; baseFeePerGas: string[] };
    const { baseFeePerGas, oldestBlock } = history;
    // A node whose history has no block leaves out the fee of the next block too.
    const kept = baseFeePerGas.length - 1 - blocks;
    return which(Number(params[1]))
      ? { oldestBlock, baseFeePerGas: baseFeePerGas.slice(0, kept && kept + 1) }
      : history;
  };
}

test.each([0, 120, 1023, 1024, 100_000])(
  'a history that lacks only the newest block, %i, gets its fee from the header',
  async (newest) => {
    const { node, read, state } = await chainOf(newest, 2);
    const whole = await read();
    // Another client, because this one has the finished spans.
    const behind = await chainOf(newest, 2);
    omitNewest(behind.node, 1, (block) => block === newest);
    expect(await behind.read()).toEqual(whole);
    expect(whole.fees.at(-1)).toBe(BigInt(newest));
    // The next block finds the history complete.
    state.head += 1;
    behind.state.head += 1;
    expect(await behind.read()).toEqual(await read());
    expect(behind.node.count('eth_feeHistory')).toBe(node.count('eth_feeHistory'));
  },
);

test('a history that lacks two blocks, or the last one of a finished span, is an upstream failure', async () => {
  const two = await chainOf(3000, 2);
  omitNewest(two.node, 2, (block) => block === 3000);
  await expect(two.read()).rejects.toThrow('other blocks than asked for');
  const finished = await chainOf(3000, 2);
  omitNewest(finished.node, 1, (block) => block === 2047);
  await expect(finished.read()).rejects.toThrow('other blocks than asked for');
});
