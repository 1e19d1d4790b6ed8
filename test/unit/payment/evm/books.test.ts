import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { OpenChainClient } from '../../../../src/chain/rpc/client.ts';
import { bytesToHex, hexToBytes } from '../../../../src/lib/hex.ts';
import type { Authorization } from '../../../../src/payment/settler.ts';
import { createSurplusCount, createTransferBooks, forBooks, readReceipts } from '../../../../src/payment/usdc/books.ts';
import { createEvidence, type Evidence, type TransactionReceipt } from '../../../../src/payment/usdc/evidence.ts';
import { TRANSFER } from '../../../../src/payment/usdc/token.ts';
import type { Payment } from '../../../../src/store/ports/payments.ts';
import { openClient } from '../../../support/chain/client.ts';
import { RpcFault, startRpcServer } from '../../../support/chain/rpc-server.ts';
import { reservation } from '../../../support/ledger/ledger-rows.ts';
import { USDC } from '../../../support/usdc/payments.ts';
import { paidReceipt, randomAuthorization, startTokenNode, type TokenNode } from '../../../support/usdc/token-node.ts';

const HEAD = 100;

let node: TokenNode;
let chain: OpenChainClient;
beforeEach(async () => {
  node = await startTokenNode();
  chain = openClient({ rpcUrls: [node.server.url], chainId: 5042, timeoutMs: 30_000 });
});
afterEach(async () => {
  await chain.close();
  await node.server.stop();
});

const books = (passedTo?: Uint8Array) =>
  createTransferBooks({ chain, evidence: createEvidence(chain, USDC), usdc: USDC, ...(passedTo && { passedTo }) });

/** A settled row of this authorization, with this transaction noted. */
function rowOf({ from, to, value, nonce }: Authorization, hash: string | null, more: Partial<Payment> = {}): Payment {
  const { channel: _none, ...row } = reservation('id', 'nonce');
  return {
    ...row,
    payer: from,
    payTo: to,
    amount: value,
    nonce,
    validBefore: 2n ** 60n,
    charged: value,
    state: 'settled',
    transaction: hash === null ? null : hexToBytes(hash as `0x${string}`),
    block: HEAD,
    checkedBlock: 1,
    endedAt: 1,
    signature: null,
    payerHasCode: false,
    reason: null,
    deliveries: 0,
    deliveredAt: null,
    channel: null,
    calldata: null,
    ...more,
  };
}

describe('a settled row', () => {
  test('is shown by its own transfer in its noted transaction, each of a batch by its own', async () => {
    const [a, b] = [randomAuthorization(), randomAuthorization()];
    const { transactionHash: hash } = node.pay(a, b);
    const rows = [rowOf(a, hash), rowOf(b, hash)];
    expect(await books().compare(rows, HEAD)).toEqual([{ kind: 'shown' }, { kind: 'shown' }]);
    expect(node.server.count('eth_getTransactionReceipt')).toBe(1);
    expect(node.server.count('eth_call')).toBe(0);
  });

  test('is missing when it only shares the transaction of another, or says another amount', async () => {
    const [a, planted] = [randomAuthorization(), randomAuthorization()];
    const { transactionHash: hash } = node.pay(a);
    const rows = [rowOf(planted, hash), rowOf(a, hash, { amount: a.value + 1n, charged: a.value + 1n })];
    expect(await books().compare(rows, HEAD)).toMatchObject([
      { kind: 'missing', amount: 1000n, detail: 'it has not paid: its authorization is unused' },
      { kind: 'missing', amount: 1001n },
    ]);
  });

  test('is missing by what it says to be paid beyond what was signed for', async () => {
    const a = randomAuthorization();
    const { transactionHash: hash } = node.pay(a);
    expect(await books().compare([rowOf(a, hash, { charged: a.value + 3n })], HEAD)).toMatchObject([
      { kind: 'missing', amount: 3n },
    ]);
  });

  test('of a transaction that the chain does not have is missing, unless another transaction used the authorization', async () => {
    const [a, b] = [randomAuthorization(), randomAuthorization()];
    node.pay(b);
    const rows = [a, b].map((one) => rowOf(one, `0x${randomBytes(32).toString('hex')}`));
    expect(await books().compare([...rows, rowOf(a, null)], HEAD)).toMatchObject([
      { kind: 'missing', amount: 1000n },
      { kind: 'shown' },
      { kind: 'missing', amount: 1000n },
    ]);
  });

  test('of a contract is missing when the contract has not passed the money on', async () => {
    const a = randomAuthorization();
    const { transactionHash: hash } = node.pay(a);
    expect(await books(randomBytes(20)).compare([rowOf(a, hash)], HEAD)).toMatchObject([{ kind: 'missing' }]);
  });

  test('of which the authorization paid something else, or has expired, is missing, with the reason', async () => {
    const a = randomAuthorization();
    const lookup = async () => ({ kind: 'failed', reason: 'it has expired' }) as const;
    const [verdict] = await createTransferBooks({ chain, evidence: { lookup }, usdc: USDC }).compare(
      [rowOf(a, null)],
      HEAD,
    );
    expect(verdict).toEqual({ kind: 'missing', amount: a.value, detail: 'it has not paid: it has expired' });
  });

  test.each([
    ['where it was last looked for', { checkedBlock: 40, block: 60 }, [40, 199_980]],
    ['its block', { checkedBlock: null, block: 199_990 }, [199_990, 199_990]],
    ['a day before', { checkedBlock: null, block: null }, [200_000 - 172_800, 199_980]],
  ])('is looked for from %s on, in a state that each provider has', async (_title, noted, span) => {
    const asked: unknown[] = [];
    const lookup: Evidence['lookup'] = async (_authorization, from, options) => {
      asked.push([from, options?.atBlock], options?.rank);
      throw new Error('no provider');
    };
    const looked = createTransferBooks({ chain, evidence: { lookup }, usdc: USDC });
    const verdicts = await looked.compare([rowOf(randomAuthorization(), null, noted)], 200_000);
    expect([asked, verdicts]).toMatchObject([[span, 'collect'], [{ kind: 'unread' }]]);
  });

  test('that took nothing from the payer beside what it says is shown', async () => {
    const a = randomAuthorization();
    const { transactionHash: hash } = node.pay(a);
    const rows = [rowOf(a, hash, { charged: null }), rowOf(a, hash, { charged: a.value - 1n })];
    expect(await books().compare(rows, HEAD)).toEqual([{ kind: 'shown' }, { kind: 'shown' }]);
  });

  test('is unread, and not missing, while its receipt cannot be read or its block is not reached', async () => {
    const a = randomAuthorization();
    const { transactionHash: hash } = node.pay(a);
    node.server.methods.eth_getTransactionReceipt = () => {
      throw new RpcFault(-32000, 'pruned');
    };
    expect(await books().compare([rowOf(a, hash), rowOf(randomAuthorization(), hash)], HEAD)).toEqual(
      Array(2).fill({ kind: 'unread', detail: 'its receipt cannot be read' }),
    );
    node.server.methods.eth_getTransactionReceipt = () => null;
    expect(await books().compare([rowOf(a, hash, { block: HEAD + 1 })], HEAD)).toEqual([
      { kind: 'unread', detail: 'its block is not reached' },
    ]);
    // Used, and no receipt shows how.
    expect(await books().compare([rowOf(a, hash)], HEAD)).toMatchObject([{ kind: 'unread' }]);
    node.server.fault = '500';
    expect(await books().compare([rowOf(a, hash)], HEAD)).toMatchObject([{ kind: 'unread' }]);
  });
});

describe('the reads of the books', () => {
  test('take at most a hundred receipts in a request, each once', async () => {
    const paid = Array.from({ length: 150 }, () => randomAuthorization());
    const hashes = paid.map((one) => hexToBytes(node.pay(one).transactionHash as `0x${string}`));
    const receiptOf = await readReceipts(chain, [...hashes, ...hashes]);
    expect(hashes.every((hash) => typeof receiptOf(hash) === 'object')).toBe(true);
    const batches = node.server.bodies.filter((body) => Array.isArray(body) && body.length > 1);
    expect(batches.map((body) => (body as unknown[]).length)).toEqual([100, 50]);
    expect(receiptOf(randomBytes(32))).toBe('unread');
  });

  test('go to another provider than the first', async () => {
    const second = await startTokenNode();
    const both = openClient({ rpcUrls: [node.server.url, second.server.url], chainId: 5042, timeoutMs: 30_000 });
    await readReceipts(both, [randomBytes(32)]);
    await forBooks(both).request('eth_getBlockByNumber', ['latest', false]);
    const [outcome] = await forBooks(both).batch([
      { method: 'eth_getTransactionReceipt', params: [`0x${'ab'.repeat(32)}`] },
    ]);
    expect(outcome).toEqual({ result: null });
    expect(second.server.count('eth_getTransactionReceipt') + second.server.count('eth_getBlockByNumber')).toBe(3);
    expect(node.server.count('eth_getTransactionReceipt') + node.server.count('eth_getBlockByNumber')).toBe(0);
    await both.close();
    await second.server.stop();
  });
});

describe('a second look at a receipt', () => {
  const hash = randomBytes(32);
  const receipt = (gasUsed: string) => paidReceipt([], { transactionHash: bytesToHex(hash), gasUsed });

  /** Takes a second look over two providers, of which the first is silent where it says null. */
  async function look(first: TransactionReceipt | null, second: TransactionReceipt) {
    const other = await startTokenNode();
    node.server.methods.eth_getTransactionReceipt = () => first;
    other.server.methods.eth_getTransactionReceipt = () => second;
    node.server.fault = first ? null : '500';
    const both = openClient({ rpcUrls: [node.server.url, other.server.url], chainId: 5042, timeoutMs: 30_000 });
    const read = (await readReceipts(both, [hash], 0))(hash);
    await both.close();
    await other.server.stop();
    return read;
  }

  test('is unread where one provider alone answers, or both differ', async () => {
    expect(await look(null, receipt('0x2'))).toBe('unread');
    expect(await look(receipt('0x1'), receipt('0x2'))).toBe('unread');
  });

  test('counts where two providers give it alike', async () => {
    expect(await look(receipt('0x1'), receipt('0x1'))).toMatchObject({ gasUsed: '0x1' });
  });

  test('counts by a lone provider’s word', async () => {
    node.server.methods.eth_getTransactionReceipt = () => receipt('0x1');
    expect((await readReceipts(chain, [hash], 0))(hash)).toMatchObject({ gasUsed: '0x1' });
  });
});

describe('what came in beyond the ledger', () => {
  const [payTo, gift, known] = [randomBytes(20), `0x${'a1'.repeat(32)}`, `0x${'b2'.repeat(32)}`];
  const topic = (bytes: Uint8Array) => `0x${Buffer.from(bytes).toString('hex').padStart(64, '0')}`;
  const SWEEPERS = [Buffer.alloc(20, 7), Buffer.alloc(20, 8)] as const;
  const log = (block: number, transactionHash: string, units: bigint, from = Buffer.alloc(20, 9)) => ({
    address: USDC as string,
    topics: [TRANSFER as string, topic(from), topic(payTo)],
    transactionHash,
    blockNumber: `0x${block.toString(16)}`,
    logIndex: `0x${block.toString(16)}`,
    blockHash: null,
    data: `0x${units.toString(16).padStart(64, '0')}`,
  });
  type Log = ReturnType<typeof log>;
  interface Filter {
    readonly fromBlock: string;
    readonly toBlock: string;
    readonly address: string | readonly string[];
    readonly topics: readonly (string | null)[];
  }

  async function counted(logs: readonly Log[], after: number, head: number, most = Number.POSITIVE_INFINITY) {
    const spans: [number, number][] = [];
    const server = await startRpcServer({
      eth_getLogs: ([filter]) => {
        const { fromBlock, toBlock, address, topics } = filter as Filter;
        const isAskedFor = (one: Log) =>
          address.includes(one.address) && topics.every((wanted, at) => wanted === null || wanted === one.topics[at]);
        const [from, to] = [Number(fromBlock), Number(toBlock)];
        spans.push([from, to]);
        if (to - from + 1 > most) throw new RpcFault(-32602, 'the range of blocks is too long');
        return logs.filter(
          (one) => isAskedFor(one) && Number(one.blockNumber) >= from && Number(one.blockNumber) <= to,
        );
      },
    });
    const client = openClient({ rpcUrls: [server.url], chainId: 5042, timeoutMs: 30_000 });
    const surplus = createSurplusCount({
      chain: client,
      usdc: USDC,
      payTo,
      without: SWEEPERS,
      known: async (hash: Uint8Array) => (Buffer.from(hash).toString('hex') === known.slice(2) ? 500n : 0n),
    });
    const found = await surplus.count(after, head);
    await client.close();
    await server.stop();
    return { ...found, spans };
  }

  test('is counted by transaction: a gift, and what a known transaction brought beyond its rows, but no sweep', async () => {
    const logs = [
      log(5, known, 500n),
      log(6, gift, 1n),
      log(7, gift, 2n),
      log(8, known, 4n),
      ...SWEEPERS.map((sweeper, at) => log(9 + at, `0x${'c3'.repeat(32)}`, 9n, sweeper)),
      // In another token, to somebody else, another event of the token, and what is no amount.
      { ...log(11, gift, 9n), address: `0x${'aa'.repeat(20)}` },
      { ...log(12, gift, 9n), topics: [TRANSFER, topic(payTo), topic(SWEEPERS[0])] },
      { ...log(13, gift, 9n), topics: [`0x${'ee'.repeat(32)}`, topic(payTo), topic(payTo)] },
      { ...log(14, gift, 0n), data: '0x' },
    ];
    const found = await counted(logs, 1, 2000);
    expect(found).toMatchObject({ block: 800, transfers: 2, amount: 7n, transactions: [known, gift] });
  });

  test('is nothing where a transaction brought what its rows say, or less', async () => {
    expect(await counted([log(5, known, 500n)], 1, 2000)).toMatchObject({ transfers: 0, amount: 0n });
    expect(await counted([log(5, known, 499n)], 1, 2000)).toMatchObject({ transfers: 0, amount: 0n });
  });

  test('is named by its first five transactions', async () => {
    const hashes = Array.from({ length: 7 }, (_, at) => `0x${`c${at}`.repeat(32)}`);
    const found = await counted(
      hashes.map((hash, at) => log(10 + at, hash, 1n)),
      1,
      2000,
    );
    expect(found).toMatchObject({ transfers: 7, amount: 7n, transactions: hashes.slice(0, 5) });
  });

  test('is left for later where the ledger may not have settled it yet, and is read once', async () => {
    expect(await counted([log(900, gift, 1n)], 1, 2000)).toMatchObject({ block: 800, transfers: 0 });
    expect(await counted([log(900, gift, 1n)], 800, 2200)).toMatchObject({
      block: 1000,
      transfers: 1,
      spans: [[801, 1000]],
    });
    expect(await counted([log(900, gift, 1n)], 1000, 2200)).toMatchObject({ block: 1000, transfers: 0, spans: [] });
  });

  test('is read in shorter spans where a node refuses long ones', async () => {
    const found = await counted([log(5, gift, 1n), log(790, gift, 1n)], 0, 2000, 300);
    expect(found).toMatchObject({ block: 800, transfers: 2, amount: 2n });
  });

  test('is read by a later round where a node refuses even one block', async () => {
    expect(await counted([log(5, gift, 1n)], 0, 2000, 0)).toMatchObject({ block: 0, transfers: 0 });
  });
});

// A receipt that the node gives for another transaction proves nothing.
test('the receipt of another transaction is unread', async () => {
  const a = randomAuthorization();
  const receipt: TransactionReceipt = paidReceipt([a]);
  node.server.methods.eth_getTransactionReceipt = () => receipt;
  const hash = randomBytes(32);
  expect((await readReceipts(chain, [hash]))(hash)).toBe('unread');
});
