import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { OpenChainClient } from '../../../src/chain/rpc/client.ts';
import { kindOf, readTransaction } from '../../../src/chain/transaction.ts';
import { UpstreamFailed } from '../../../src/errors.ts';
import { openClient } from '../../support/chain/client.ts';
import { RpcFault, type RpcServer, startRpcServer } from '../../support/chain/rpc-server.ts';

const HASH = `0x${'3e'.repeat(32)}` as const;
const A = `0x${'a1'.repeat(20)}`;
const transaction = {
  hash: HASH,
  blockNumber: '0x10',
  from: A,
  to: A,
  value: '0x0',
  input: '0x',
  nonce: '0x7',
  gas: '0x5208',
  gasPrice: '0x4a817c800',
};
const receipt = {
  transactionHash: HASH,
  blockNumber: '0x10',
  status: '0x1',
  gasUsed: '0x5208',
  effectiveGasPrice: '0x4a817c800',
  contractAddress: null,
  logs: [],
};

let node: RpcServer;
let chain: OpenChainClient;
beforeAll(async () => {
  node = await startRpcServer();
  chain = openClient({ rpcUrls: [node.url], chainId: 5042, timeoutMs: 60_000 });
});
afterAll(async () => {
  await chain.close();
  await node.stop();
});
beforeEach(() => answers(transaction, receipt));

function answers(found: unknown, settled: unknown, head: unknown = '0x20'): void {
  node.methods.eth_blockNumber = () => head;
  node.methods.eth_getTransactionByHash = () => found;
  node.methods.eth_getTransactionReceipt = () => settled;
}

test('a mined transaction comes with its receipt, read in one batch', async () => {
  const before = node.bodies.length;
  const read = await readTransaction(chain, HASH, {});
  expect(read).toMatchObject({ head: 32, transaction: { hash: HASH, value: 0n }, receipt: { gasUsed: 21000 } });
  expect(node.bodies.slice(before).filter(Array.isArray)).toHaveLength(1);
});

test.each([
  ['the maximum', { maxFeePerGas: '0x9', gasPrice: '0x8' }, 9n],
  ['the gas price without one', { gasPrice: '0x8' }, 8n],
])('the most that it pays is %s', async (_what, fees, most) => {
  answers({ ...transaction, ...fees }, receipt);
  expect((await readTransaction(chain, HASH, {}))?.transaction.maxFeePerGas).toBe(most);
});

test('an unknown transaction is null, and a pending one has no receipt', async () => {
  answers(null, null);
  expect(await readTransaction(chain, HASH, {})).toBeNull();
  answers({ ...transaction, blockNumber: null }, null);
  expect(await readTransaction(chain, HASH, {})).toMatchObject({ receipt: null, head: 32 });
});

test('a transaction that is mined between the reads has its receipt, and `head` is at least its block', async () => {
  answers({ ...transaction, blockNumber: null }, { ...receipt, blockNumber: '0x21' });
  expect(await readTransaction(chain, HASH, {})).toMatchObject({ head: 33, receipt: { blockNumber: 33 } });
});

test.each([
  ['a receipt without gas', transaction, { ...receipt, gasUsed: undefined }],
  ['a status of neither kind', transaction, { ...receipt, status: '0x2' }],
  ['logs that are no list', transaction, { ...receipt, logs: {} }],
  ['a quantity past 256 bits', { ...transaction, value: `0x${'f'.repeat(65)}` }, receipt],
  ['a quantity in decimal', { ...transaction, value: '12' }, receipt],
  ['a block number past 2^53', transaction, { ...receipt, blockNumber: '0xffffffffffffffff' }],
  ['half a byte of input', { ...transaction, input: '0x123' }, receipt],
  ['no nonce', { ...transaction, nonce: undefined }, receipt],
  ['neither a gas price nor a maximum', { ...transaction, gasPrice: undefined }, receipt],
  ['a text', 'transaction', receipt],
  ['another transaction', { ...transaction, hash: `0x${'00'.repeat(32)}` }, receipt],
  ["another transaction's receipt", transaction, { ...receipt, transactionHash: `0x${'00'.repeat(32)}` }],
  ['no receipt of a mined transaction', transaction, null],
])('%s is an upstream failure', async (_what, found, settled) => {
  answers(found, settled);
  await expect(readTransaction(chain, HASH, {})).rejects.toBeInstanceOf(UpstreamFailed);
});

test('a node that refuses the calls is an upstream failure', async () => {
  delete node.methods.eth_getTransactionReceipt;
  await expect(readTransaction(chain, HASH, {})).rejects.toBeInstanceOf(UpstreamFailed);
});

test.each([
  ['deploy', null, '0x6000'],
  ['nativeTransfer', A, '0x'],
  ['tokenTransfer', A, `0xa9059cbb${'0'.repeat(128)}`],
  ['tokenTransfer', A, `0x23B872DD${'0'.repeat(192)}`],
  ['tokenTransfer', A, `0xe3ee160e${'0'.repeat(64)}`],
  ['contractCall', A, '0x095ea7b3'],
  ['contractCall', A, '0x00'],
])('%s: to %s with input %s', (kind, to, input) => {
  expect(kindOf({ to: to as `0x${string}` | null, input })).toBe(kind);
});

test('the transaction, its receipt and the block number come from one node, also where the first refuses one of them', async () => {
  const refusing = await startRpcServer({ ...node.methods, eth_blockNumber: () => '0x99' });
  refusing.methods.eth_getTransactionReceipt = () => {
    throw new RpcFault(-32005, 'limit exceeded');
  };
  const both = openClient({ rpcUrls: [refusing.url, node.url], chainId: 5042, timeoutMs: 60_000 });
  try {
    expect(await readTransaction(both, HASH, {})).toMatchObject({ head: 32, receipt: { gasUsed: 21000 } });
  } finally {
    await both.close();
    await refusing.stop();
  }
});
