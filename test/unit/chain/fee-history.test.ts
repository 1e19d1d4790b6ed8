import { afterEach, expect, test } from 'vitest';
import { readLatestHeader } from '../../../src/chain/block.ts';
import { baseFeeOf, readFeeWindow } from '../../../src/chain/fees.ts';
import type { OpenChainClient } from '../../../src/chain/rpc/client.ts';
import { UpstreamFailed } from '../../../src/errors.ts';
import { openClient } from '../../support/chain/client.ts';
import { RpcFault, type RpcServer, startRpcServer } from '../../support/chain/rpc-server.ts';

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
  const chain = openClient({ rpcUrls: [node.url], chainId: 5042, timeoutMs: 60_000 });
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

/** A node whose fee history ends at `newest`: it refuses later blocks, or answers as if they did not exist. */
function endHistoryAt(node: RpcServer, newest: number, how: 'refuses' | 'omits') {
  const { eth_feeHistory: whole } = node.methods;
  node.methods.eth_feeHistory = ([count, asked]) => {
    const over = Math.max(Number(asked) - newest, 0);
    if (over > 0 && how === 'refuses') {
      throw new RpcFault(-32000, `request beyond head block: requested ${Number(asked)}, head ${newest}`);
    }
    return whole?.([Number(count) - over, Number(asked) - over]);
  };
}

test.each([1, 2, 120, 1023, 1024, 1025, 100_000])(
  'a node that has no fee history of the newest block, %i, yet gives the same window',
  async (newest) => {
    const { read } = await chainOf(newest, 2);
    const whole = await read();
    expect(whole.fees.at(-1)).toBe(BigInt(newest));
    expect(whole.fees[0]).toBe(BigInt(newest + 1 - whole.fees.length));
    for (const how of ['refuses', 'omits'] as const) {
      const behind = await chainOf(newest, 2);
      endHistoryAt(behind.node, newest - 1, how);
      expect(await behind.read()).toEqual(whole);
    }
  },
);

test('a history that lacks ten blocks before the head gives the window without them, and they are read again', async () => {
  const { node, state, read } = await chainOf(3072, 2);
  const { methods } = node;
  const whole = { ...methods };
  endHistoryAt(node, 3061, 'omits');
  const { fees, toBlock, seconds } = await read();
  expect([fees.slice(-2), fees.length, toBlock, seconds]).toEqual([[3061n, 3072n], 3063, 3072, 1536]);
  Object.assign(methods, whole);
  state.head = 3100;
  expect((await read()).fees).toHaveLength(3101);
});

test.each([
  ['eleven blocks before the head', 3000, 2988],
  ['a block of a finished span', 4096, 3070],
])('a history that lacks %s is an upstream failure', async (_what, head, newest) => {
  const { node, read } = await chainOf(head, 2);
  endHistoryAt(node, newest, 'omits');
  await expect(read()).rejects.toThrow('other blocks than asked for');
});
