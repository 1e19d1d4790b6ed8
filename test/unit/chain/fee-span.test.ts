import { expect, test } from 'vitest';
import { feeSpanCalls, readFeeSpan } from '../../../src/chain/fees.ts';
import { Contradiction } from '../../../src/chain/rpc/checked.ts';
import { RpcError, type RpcOutcome } from '../../../src/chain/rpc/wire.ts';

const header = (number: number, at: number): RpcOutcome => ({
  result: {
    number: `0x${number.toString(16)}`,
    hash: `0x${'a1'.repeat(32)}`,
    parentHash: `0x${'a0'.repeat(32)}`,
    timestamp: `0x${at.toString(16)}`,
    baseFeePerGas: `0x${number.toString(16)}`,
    gasUsed: '0x0',
    gasLimit: '0x1',
    extraData: '0x',
    transactions: [],
  },
});
const history = (oldest: number, count: number): RpcOutcome => ({
  result: {
    oldestBlock: `0x${oldest.toString(16)}`,
    baseFeePerGas: Array.from({ length: count + 1 }, (_, at) => `0x${(oldest + at).toString(16)}`),
    gasUsedRatio: Array(count).fill(0.5),
  },
});
const read = (first: RpcOutcome) => readFeeSpan([first, header(16, 100), header(18, 104)], 16, 18);

test('a span has the fee of each block, and times between those of its ends', () => {
  expect(feeSpanCalls(16, 18)).toHaveLength(3);
  expect(read(history(16, 3))).toEqual(
    [100, 102, 104].map((at, offset) => ({ number: 16 + offset, at, baseFee: BigInt(16 + offset), utilisation: 0.5 })),
  );
});

test('a history of other blocks contradicts the request', () => {
  for (const other of [history(15, 3), history(16, 2), history(17, 3)])
    expect(() => read(other)).toThrow(Contradiction);
});

test('a refused history is null', () => {
  expect(read({ error: new RpcError(-32601, 'the method eth_feeHistory does not exist') })).toBeNull();
});
