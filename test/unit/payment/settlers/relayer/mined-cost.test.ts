import { expect, test } from 'vitest';
import { bytesToHex } from '../../../../../src/lib/hex.ts';
import {
  costOf,
  newJob,
  newOperationJob,
  railCostsOf,
  type Transaction,
} from '../../../../../src/payment/relayer/transactions.ts';
import { paidReceipt, randomIntent } from '../../../../support/usdc/token-node.ts';

const COST = { wei: 4000n, gasUsed: 400n };
const call = { to: Buffer.alloc(20, 1), data: Buffer.alloc(4) };
const job = (rail: string | undefined, isCall = false) =>
  newJob({ ...randomIntent(isCall ? { call } : {}), ...(rail && { rail }) }, 0);
const transaction = (part: Partial<Transaction>): Transaction => ({
  jobs: [],
  operationJob: null,
  gas: 0n,
  price: { maxFeePerGas: 1n, maxPriorityFeePerGas: 1n },
  hash: bytesToHex(Buffer.alloc(32)),
  raw: bytesToHex(Buffer.alloc(1)),
  ...part,
});

test('a batch’s cost is split among its rails: a deposit counts twice, and only settled payments are counted', () => {
  const jobs = [job('plain'), job('plain'), job('channels', true)];
  const settled = new Set(jobs.slice(1));
  expect(railCostsOf(transaction({ jobs }), COST, settled)).toEqual([
    { rail: 'plain', wei: 2000, gasUsed: 200, settled: 1 },
    { rail: 'channels', wei: 2000, gasUsed: 200, settled: 1 },
  ]);
});

test('an operation’s cost is its rail’s alone, and settles no payment', () => {
  const operation = {
    ...call,
    id: 'claim',
    gas: 1n,
    broadcast: false,
    rail: 'channels',
    readReceipt: () => null,
    lookUp: async () => null,
    note: async () => true,
  };
  const operationJob = newOperationJob(operation, 0);
  expect(railCostsOf(transaction({ operationJob }), COST, new Set())).toEqual([
    { rail: 'channels', wei: 4000, gasUsed: 400, settled: 0 },
  ]);
});

test('a payment without a rail’s name is counted under another name, and not lost', () => {
  const jobs = [job(undefined)];
  expect(railCostsOf(transaction({ jobs }), COST, new Set(jobs))).toEqual([
    { rail: 'other', wei: 4000, gasUsed: 400, settled: 1 },
  ]);
});

test.each<[string, string | undefined, bigint]>([
  ['below the offer counts as it is', '0x1e', 30n],
  ['at the offer counts as it is', '0x28', 40n],
  ['above the offer counts as the offer', `0x${'f'.repeat(64)}`, 40n],
  ['of 0 counts as the offer', '0x0', 40n],
  ['that is missing counts as the offer', undefined, 40n],
])('a receipt’s price of gas %s', (_, effectiveGasPrice, gasPrice) => {
  const jobs = [job('plain'), job('plain')];
  const paid = transaction({ jobs, price: { maxFeePerGas: 40n, maxPriorityFeePerGas: 1n } });
  const receipt = paidReceipt([], { gasUsed: '0x64', effectiveGasPrice });
  const wei = 100n * gasPrice;
  expect(costOf(paid, receipt, 1)).toMatchObject({ gasPrice, wei, failedWei: wei / 2n });
});
