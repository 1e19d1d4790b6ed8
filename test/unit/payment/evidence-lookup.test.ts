import { randomBytes } from 'node:crypto';
import { afterEach, expect, test } from 'vitest';
import { createChainClient } from '../../../src/chain/client.ts';
import { createEvidence } from '../../../src/payment/usdc/evidence.ts';
import { USDC } from '../../support/payments.ts';
import { RpcFault, startRpcServer } from '../../support/rpc-server.ts';
import { paidReceipt, randomAuthorization, startTokenNode } from '../../support/token-node.ts';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const now = Math.floor(Date.now() / 1000);
const expired = {
  from: randomBytes(20),
  to: randomBytes(20),
  value: 1000n,
  validAfter: 0n,
  validBefore: BigInt(now - 1),
  nonce: randomBytes(32),
  signature: randomBytes(65),
};
const head = () => ({ number: '0x64', timestamp: `0x${now.toString(16)}` });
const unused = `0x${'0'.repeat(64)}`;

async function lookup(...nodes: Parameters<typeof startRpcServer>[0][]) {
  const servers = await Promise.all(
    nodes.map((methods) => startRpcServer({ eth_chainId: () => '0x13b2', ...methods })),
  );
  const chain = createChainClient({ rpcUrls: servers.map(({ url }) => url), chainId: 5042, timeoutMs: 1000 });
  closing.push(() => chain.close(), ...servers.map((server) => () => server.stop()));
  return createEvidence(chain, USDC).lookup(expired, 1);
}

test('an authorization that ran out unused has failed', async () => {
  expect(await lookup({ eth_getBlockByNumber: head, eth_call: () => unused })).toMatchObject({ kind: 'failed' });
});

test('the header of one node and the state of another that lags behind it prove nothing', async () => {
  const limited = () => {
    throw new RpcFault(-32011, 'request limit reached');
  };
  // It knows nothing of block 100; asked for the latest it would tell of a time before the transfer.
  const lagging = ([, block]: unknown[]) => {
    if (block !== 'latest') throw new RpcFault(-32000, 'header not found');
    return unused;
  };
  const verdict = lookup({ eth_getBlockByNumber: head, eth_call: limited }, { eth_call: lagging });
  expect(await verdict.catch(() => 'unreadable')).toBe('unreadable');
});

/** The real lookup of a used authorization, after the node's answers were twisted. */
async function lookupUsed(twist: (node: Awaited<ReturnType<typeof startTokenNode>>) => void, atBlock?: number) {
  const node = await startTokenNode();
  const chain = createChainClient({ rpcUrls: [node.server.url], chainId: 5042, timeoutMs: 1000 });
  closing.push(
    () => chain.close(),
    () => node.server.stop(),
  );
  const authorization = randomAuthorization();
  const receipt = node.pay(authorization);
  twist(node);
  const verdict = createEvidence(chain, USDC).lookup(authorization, 1, atBlock);
  return { receipt, kind: await verdict.then(({ kind }) => kind).catch(() => 'unreadable') };
}

test('a used authorization is settled by the transaction that holds its use and its transfer', async () => {
  expect((await lookupUsed(() => {})).kind).toBe('settled');
  expect((await lookupUsed(() => {}, 100)).kind).toBe('settled');
});

test.each<[string, string, (receipt: ReturnType<typeof paidReceipt>) => unknown]>([
  ['of another transaction', 'unknown', () => paidReceipt([randomAuthorization()])],
  ['without the log that led to it', 'unknown', (receipt) => ({ ...receipt, logs: [] })],
  ['without a hash', 'unknown', ({ transactionHash: _, ...rest }) => rest],
  ['that has no logs at all', 'unknown', ({ logs: _, ...rest }) => rest],
  ['that is a number', 'unknown', () => 7],
  ['that is not there', 'unknown', () => null],
])('a receipt %s proves nothing: neither that it was paid nor that it was not', async (_, kind, twisted) => {
  let good: ReturnType<typeof paidReceipt> | null = null;
  const found = await lookupUsed(({ server }) => {
    const honest = server.methods.eth_getTransactionReceipt;
    server.methods.eth_getTransactionReceipt = (params) => {
      good = honest?.(params) as ReturnType<typeof paidReceipt>;
      return twisted(good);
    };
  });
  expect(good).not.toBeNull();
  expect(found.kind).toBe(kind);
});

test.each<[string, string, unknown]>([
  ['eth_getLogs', 'unreadable', {}],
  ['eth_getLogs', 'unknown', [{ topics: [], transactionHash: `0x${'00'.repeat(32)}` }]],
  ['eth_call', 'unreadable', '0x'],
  ['eth_call', 'unreadable', null],
  ['eth_getBlockByNumber', 'unknown', null],
  ['eth_getBlockByNumber', 'unreadable', { number: 'latest', timestamp: '0x0' }],
])('%s that answers nonsense is %s', async (method, kind, nonsense) => {
  const found = await lookupUsed(({ server }) => {
    server.methods[method] = () => nonsense;
  });
  expect(found.kind).toBe(kind);
});

test('a node that shows another block than was asked for proves nothing', async () => {
  expect((await lookupUsed(() => {}, 90)).kind).toBe('unknown');
});
