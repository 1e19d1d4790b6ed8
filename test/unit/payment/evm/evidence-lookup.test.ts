import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import type { Authorization } from '../../../../src/payment/settler.ts';
import { createEvidence } from '../../../../src/payment/usdc/evidence.ts';
import { openClient } from '../../../support/chain/client.ts';
import { RpcFault, startRpcServer } from '../../../support/chain/rpc-server.ts';
import { watchedChain } from '../../../support/chain/watched-chain.ts';
import { USDC } from '../../../support/usdc/payments.ts';
import { paidReceipt, randomAuthorization, startTokenNode } from '../../../support/usdc/token-node.ts';

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
  return lookupOf(expired, ...nodes);
}

async function lookupOf(authorization: Authorization, ...nodes: Parameters<typeof startRpcServer>[0][]) {
  const servers = await Promise.all(
    nodes.map((methods) => startRpcServer({ eth_chainId: () => '0x13b2', ...methods })),
  );
  const chain = openClient({ rpcUrls: servers.map(({ url }) => url), chainId: 5042, timeoutMs: 30_000 });
  closing.push(() => chain.close(), ...servers.map((server) => () => server.stop()));
  return createEvidence(chain, USDC).lookup(authorization, 1);
}

test('an authorization that ran out unused has failed', async () => {
  expect(await lookup({ eth_getBlockByNumber: head, eth_call: () => unused })).toEqual({
    kind: 'failed',
    reason: 'invalid_exact_evm_payload_authorization_valid_before',
  });
});

test.each([
  ['at the last second', 1n, 'open'],
  ['in the second after it', 0n, 'failed'],
])('an unused authorization is %s of its time, by the block’s own clock, %s', async (_, left, kind) => {
  const verdict = lookupOf(
    { ...expired, validBefore: BigInt(now) + left },
    { eth_getBlockByNumber: head, eth_call: () => unused },
  );
  expect((await verdict).kind).toBe(kind);
});

test('the header of one node and the state of another that lags behind it prove nothing', async () => {
  const limited = () => {
    throw new RpcFault(-32011, 'request limit reached');
  };
  // It does not have block 100. Its latest block is from before the transfer.
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
  const chain = openClient({ rpcUrls: [node.server.url], chainId: 5042, timeoutMs: 30_000 });
  closing.push(
    () => chain.close(),
    () => node.server.stop(),
  );
  const authorization = randomAuthorization();
  const receipt = node.pay(authorization);
  twist(node);
  const verdict = createEvidence(chain, USDC).lookup(authorization, 1, { ...(atBlock !== undefined && { atBlock }) });
  const found = await verdict.catch(() => ({ kind: 'unreadable' as const }));
  return { receipt, found, kind: found.kind, node, authorization };
}

test('a used authorization is settled by the transaction that holds its use and its transfer', async () => {
  const { found, receipt } = await lookupUsed(() => {});
  expect(found).toEqual({
    kind: 'settled',
    block: 100,
    paid: 1000n,
    transaction: Buffer.from(receipt.transactionHash.slice(2), 'hex'),
  });
  expect((await lookupUsed(() => {}, 100)).kind).toBe('settled');
});

test('everything is read at the block that was asked for, and the logs up to it', async () => {
  const { node } = await lookupUsed(() => {}, 100);
  const asked = node.server.bodies.flat() as { method: string; params: unknown[] }[];
  const paramsOf = (name: string) => asked.find(({ method }) => method === name)?.params;
  expect(paramsOf('eth_getBlockByNumber')).toEqual(['0x64', false]);
  expect(paramsOf('eth_call')?.[1]).toBe('0x64');
  expect(paramsOf('eth_getLogs')).toMatchObject([{ address: USDC, fromBlock: '0x1', toBlock: '0x64' }]);
});

test('a used authorization whose money went elsewhere, or that was cancelled, has failed', async () => {
  const elsewhere = await lookupUsed((node) => {
    const honest = node.server.methods.eth_getTransactionReceipt;
    node.server.methods.eth_getTransactionReceipt = (params) => {
      const receipt = honest?.(params) as ReturnType<typeof paidReceipt>;
      return { ...receipt, logs: receipt.logs.slice(0, 1) };
    };
  });
  expect(elsewhere.found).toEqual({ kind: 'failed', reason: 'invalid_exact_evm_nonce_already_used' });
  const node = await startTokenNode();
  const chain = openClient({ rpcUrls: [node.server.url], chainId: 5042, timeoutMs: 30_000 });
  closing.push(
    () => chain.close(),
    () => node.server.stop(),
  );
  const authorization = randomAuthorization();
  node.cancel(authorization);
  expect(await createEvidence(chain, USDC).lookup(authorization, 1)).toEqual(elsewhere.found);
});

test.each([
  ['another nonce', 2],
  ['another payer', 1],
  ['another event', 0],
])('a log of %s in a node’s answer is not taken for the end of this one', async (_, at) => {
  const { kind } = await lookupUsed(({ server }) => {
    const honest = server.methods.eth_getLogs;
    server.methods.eth_getLogs = (params) =>
      ((honest?.(params) ?? []) as { topics: string[] }[]).map((log) => ({
        ...log,
        topics: log.topics.map((topic, index) => (index === at ? `0x${'77'.repeat(32)}` : topic)),
      }));
  });
  expect(kind).toBe('unknown');
});

test('a receipt of the right transaction whose log another contract wrote proves nothing', async () => {
  const { kind } = await lookupUsed(({ server }) => {
    const honest = server.methods.eth_getTransactionReceipt;
    server.methods.eth_getTransactionReceipt = (params) => {
      const receipt = honest?.(params) as ReturnType<typeof paidReceipt>;
      return { ...receipt, logs: receipt.logs.map((log) => ({ ...log, address: `0x${'11'.repeat(20)}` })) };
    };
  });
  expect(kind).toBe('unknown');
});

test('a payment in the very block at which it was checked is found', async () => {
  const node = await startTokenNode();
  const chain = openClient({ rpcUrls: [node.server.url], chainId: 5042, timeoutMs: 30_000 });
  closing.push(
    () => chain.close(),
    () => node.server.stop(),
  );
  const authorization = randomAuthorization();
  node.pay(authorization);
  expect((await createEvidence(chain, USDC).lookup(authorization, 100)).kind).toBe('settled');
});

test('logs are asked for in spans that public nodes take, from the first block to the head, until they hold the end', async () => {
  const tall = { number: `0x${(25_000).toString(16)}`, timestamp: `0x${now.toString(16)}` };
  const ranges: [number, number][] = [];
  const { kind } = await lookupUsed(({ server }) => {
    const honest = server.methods.eth_getLogs;
    server.methods.eth_getBlockByNumber = () => tall;
    server.methods.eth_getLogs = (params) => {
      const [{ fromBlock, toBlock }] = params as [{ fromBlock: string; toBlock: string }];
      ranges.push([Number(fromBlock), Number(toBlock)]);
      return Number(toBlock) >= 10_000 ? honest?.(params) : [];
    };
  });
  expect([kind, ranges]).toEqual([
    'settled',
    [
      [1, 9999],
      [10_000, 19_998],
    ],
  ]);
  ranges.length = 0;
  const none = await lookupUsed(({ server }) => {
    server.methods.eth_getBlockByNumber = () => tall;
    server.methods.eth_getLogs = (params) => {
      const [{ fromBlock, toBlock }] = params as [{ fromBlock: string; toBlock: string }];
      ranges.push([Number(fromBlock), Number(toBlock)]);
      return [];
    };
  });
  expect([none.kind, ranges.at(-1)]).toEqual(['unknown', [19_999, 25_000]]);
});

test('every question has the rank that was asked for, and that of a settlement by default', async () => {
  const node = await startTokenNode();
  const chain = openClient({ rpcUrls: [node.server.url], chainId: 5042, timeoutMs: 30_000 });
  closing.push(
    () => chain.close(),
    () => node.server.stop(),
  );
  const { chain: watched, asked } = watchedChain(chain);
  const ranks = () => asked.splice(0).map(({ rank }) => rank);
  const authorization = randomAuthorization();
  node.pay(authorization);
  await createEvidence(watched, USDC).lookup(authorization, 1);
  expect(ranks()).toEqual(Array(4).fill('settle'));
  await createEvidence(watched, USDC).lookup(authorization, 1, { rank: 'collect' });
  expect(ranks()).toEqual(Array(4).fill('collect'));
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
  ['eth_getBlockByNumber', 'unreadable', null],
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

describe('a transaction that a third party names', () => {
  async function named(
    transactionOf: (receipt: { transactionHash: string }) => string,
    paysFor = randomAuthorization(),
  ) {
    const node = await startTokenNode();
    const chain = openClient({ rpcUrls: [node.server.url], chainId: 5042, timeoutMs: 30_000 });
    closing.push(
      () => chain.close(),
      () => node.server.stop(),
    );
    const receipt = node.pay(paysFor);
    const transaction = transactionOf(receipt) as `0x${string}`;
    return { node, receipt, ask: (of = paysFor) => createEvidence(chain, USDC).paidIn(of, transaction) };
  }

  test('settles what it paid for, with one request', async () => {
    const { node, receipt, ask } = await named(({ transactionHash }) => transactionHash);
    expect(await ask()).toMatchObject({
      kind: 'settled',
      transaction: Buffer.from(receipt.transactionHash.slice(2), 'hex'),
    });
    expect(node.server.count('eth_getTransactionReceipt')).toBe(1);
    expect(node.server.count('eth_getLogs')).toBe(0);
  });

  test('settles nothing else, whatever it paid for', async () => {
    const { ask } = await named(({ transactionHash }) => transactionHash);
    expect(await ask(randomAuthorization())).toBeNull();
  });

  test('settles nothing while no node has it', async () => {
    const { ask } = await named(() => `0x${'ab'.repeat(32)}`);
    expect(await ask()).toBeNull();
  });
});
