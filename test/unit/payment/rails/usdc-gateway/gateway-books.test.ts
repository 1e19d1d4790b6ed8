import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ChainClient } from '../../../../../src/chain/rpc/client.ts';
import type { RpcCall, RpcOptions } from '../../../../../src/chain/rpc/wire.ts';
import { bytesToHex } from '../../../../../src/lib/hex.ts';
import { createGatewayBooks } from '../../../../../src/payment/usdc/gateway-client.ts';
import { AUTHORIZATION_USED, TRANSFER } from '../../../../../src/payment/usdc/token.ts';
import { createSqliteStores } from '../../../../../src/store/open.ts';
import type { Payment } from '../../../../../src/store/ports/payments.ts';
import type { LedgerStores } from '../../../../../src/store/ports/stores.ts';
import { openClient } from '../../../../support/chain/client.ts';
import { startRpcServer } from '../../../../support/chain/rpc-server.ts';
import { openMemoryLedger } from '../../../../support/ledger/fresh-ledger.ts';
import { hash32, reservation } from '../../../../support/ledger/ledger-rows.ts';
import { USDC } from '../../../../support/usdc/payments.ts';

const WALLET = `0x${'77'.repeat(20)}`;
const SELLER = Buffer.alloc(20, 1);
const BATCH = hash32('batch');
const topic = (bytes: Uint8Array) => `0x${Buffer.from(bytes).toString('hex').padStart(64, '0')}`;
const word = (units: bigint) => `0x${units.toString(16).padStart(64, '0')}`;

let stores: LedgerStores;
/** The receipt of the batch as the provider of each turn gives it; an error is thrown. */
let receipts: Map<number, object | null | Error>;
beforeEach(() => {
  stores = createSqliteStores(openMemoryLedger());
  receipts = new Map();
});
afterEach(() => stores.close());

const byTurn: Pick<ChainClient, 'batch'> = {
  batch: async (calls: readonly RpcCall[], { turn = 0 }: RpcOptions = {}) => {
    const receipt = receipts.get(turn) ?? null;
    if (receipt instanceof Error) throw receipt;
    return calls.map(() => ({ result: receipt }));
  },
};
const books = (chain = byTurn) =>
  createGatewayBooks({
    chain,
    transfers: stores.transfers,
    ledger: stores.payments,
    usdc: USDC,
    wallet: WALLET,
  });

/** A settled row of 500, and what is known of its transfer. */
async function settle(id: string, transaction: Uint8Array | null = BATCH, status = 'completed'): Promise<void> {
  const { payments, transfers } = stores;
  await payments.reserve(reservation(id, id, { payTo: SELLER }), 0, null);
  await payments.move(id, ['reserved'], 'settling', {});
  await payments.move(id, ['settling'], 'settled', { endedAt: 1, transaction: Buffer.alloc(16, id) });
  await transfers.note(id, { status, transaction, nextCheckAt: null });
}
async function compare(...ids: string[]) {
  return books().compare(await rowsOf(...ids), 100);
}
const rowsOf = async (...ids: string[]) => (await Promise.all(ids.map((id) => stores.payments.get(id)))) as Payment[];

const transfer = (units: bigint, to: Uint8Array = SELLER, address: string = USDC) => ({
  address,
  topics: [TRANSFER, topic(randomBytes(20)), topic(to)],
  data: word(units),
});
const receiptOf = (logs: object[], status = '0x1') => ({
  transactionHash: bytesToHex(BATCH),
  blockNumber: '0x5',
  gasUsed: '0x1',
  status,
  logs,
});
const both = (receipt: object | null) => {
  receipts.set(0, receipt).set(1, receipt);
};

test('a batch that credits the seller with all its rows shows them, by the token or by an event of the wallet', async () => {
  for (const id of ['a', 'b']) await settle(id);
  both(receiptOf([transfer(1000n)]));
  expect(await compare('a', 'b')).toEqual([{ kind: 'shown' }, { kind: 'shown' }]);
  both(receiptOf([transfer(400n, SELLER, WALLET), transfer(600n, SELLER, WALLET)]));
  expect(await compare('a', 'b')).toEqual([{ kind: 'shown' }, { kind: 'shown' }]);
  // One credit that both tell of is one.
  both(receiptOf([transfer(500n), transfer(500n, SELLER, WALLET)]));
  expect(await compare('a', 'b')).toMatchObject([{ kind: 'shown' }, { kind: 'missing', amount: 500n }]);
  // Where one tells of more, that counts.
  for (const [byToken, byWallet] of [
    [1000n, 500n],
    [500n, 1000n],
  ] as const) {
    const logs = [transfer(byToken), transfer(byWallet, SELLER, WALLET)];
    for (const some of [logs, logs.toReversed()]) {
      both(receiptOf(some));
      expect(await compare('a', 'b')).toEqual([{ kind: 'shown' }, { kind: 'shown' }]);
    }
  }
});

test('a batch owes nothing to a row that the ledger no longer has', async () => {
  await settle('b');
  await stores.transfers.note('a gone', { status: 'completed', transaction: BATCH, nextCheckAt: null });
  both(receiptOf([transfer(500n)]));
  expect(await compare('b')).toEqual([{ kind: 'shown' }]);
});

test('a row that shares the credit of others, and a batch one unit short, are missing', async () => {
  for (const id of ['a', 'b', 'c']) await settle(id);
  both(receiptOf([transfer(999n)]));
  const detail = 'its batch credits less than its rows';
  expect(await compare('a', 'b', 'c')).toEqual([
    { kind: 'shown' },
    { kind: 'missing', amount: 1n, detail },
    { kind: 'missing', amount: 500n, detail },
  ]);
  both(receiptOf([transfer(0n)]));
  expect(await compare('a')).toEqual([{ kind: 'missing', amount: 500n, detail }]);
  // A row of the batch that is compared alone has no more credit than beside the others.
  expect(await compare('c')).toMatchObject([{ kind: 'missing', amount: 500n }]);
});

test('transfers to others, and those of an authorization of the token, are no credit', async () => {
  await settle('a');
  const used = {
    address: USDC,
    topics: [AUTHORIZATION_USED, topic(randomBytes(20)), topic(randomBytes(32))],
    data: '0x',
  };
  both(
    receiptOf([
      transfer(1n),
      transfer(500n, randomBytes(20)),
      transfer(500n, SELLER, WALLET.replace('77', '78')),
      // Another event of the token, one that names the seller alone, and what is no amount.
      { ...transfer(500n), topics: [topic(randomBytes(32)), topic(SELLER)] },
      { address: WALLET, topics: [topic(SELLER)], data: word(500n) },
      { ...transfer(0n), data: '0x' },
      // Another contract's use of an authorization ends nothing.
      { ...used, address: WALLET },
      transfer(1n),
      used,
      transfer(500n),
    ]),
  );
  expect(await compare('a')).toMatchObject([{ kind: 'missing', amount: 498n }]);
});

test('what the Gateway failed, what has no transfer, and a batch that reverted are missing', async () => {
  await settle('failed', null, 'failed');
  await settle('reverted');
  both(receiptOf([], '0x0'));
  expect(await compare('failed', 'reverted')).toMatchObject([
    { kind: 'missing', amount: 500n, detail: 'the Gateway failed its transfer' },
    { kind: 'missing', amount: 500n, detail: 'the transaction of its batch reverted' },
  ]);
  await stores.payments.reserve(reservation('planted', 'planted'), 0, null);
  await stores.payments.move('planted', ['reserved'], 'settling', {});
  await stores.payments.move('planted', ['settling'], 'settled', { endedAt: 1 });
  expect(await compare('planted')).toEqual([
    { kind: 'missing', amount: 500n, detail: 'the ledger has no transfer of it' },
  ]);
});

test('a batch is read as two providers give it, and one that does not answer leaves it unread', async () => {
  await settle('a');
  const asked: boolean[] = [];
  const chain: typeof byTurn = {
    batch: (calls, options) => {
      asked.push(options?.statements !== undefined);
      return byTurn.batch(calls, options);
    },
  };
  both(receiptOf([transfer(500n)]));
  expect(await books(chain).compare(await rowsOf('a'), 100)).toEqual([{ kind: 'shown' }]);
  receipts.set(0, new Error('no answer'));
  expect(await books(chain).compare(await rowsOf('a'), 100)).toMatchObject([{ kind: 'unread' }]);
  expect(asked).toEqual([true, true]);
});

test('one provider that shows too little stops nothing while the other one is silent; two that show it are believed', async () => {
  await settle('a');
  const nodes = await Promise.all(
    [500n, 1n].map((units) =>
      startRpcServer({
        eth_getTransactionReceipt: () => receiptOf([transfer(units, SELLER)]),
      }),
    ),
  );
  const [honest, liar] = nodes;
  const chain = openClient({ rpcUrls: nodes.map(({ url }) => url), chainId: 5042, timeoutMs: 30_000 });
  if (!honest || !liar) throw new Error('no providers');
  honest.fault = '500';
  const rows = await rowsOf('a');
  expect(await books(chain).compare(rows, 100)).toMatchObject([{ kind: 'unread' }]);
  honest.fault = null;
  const short = receiptOf([transfer(1n)]);
  for (const { methods } of nodes) methods.eth_getTransactionReceipt = () => short;
  expect(await books(chain).compare(rows, 100)).toMatchObject([{ kind: 'missing', amount: 499n }]);
  await chain.close();
  await Promise.all(nodes.map((node) => node.stop()));
});

test('a batch that is not known, not final, not there, or in which no credit can be read, is unread', async () => {
  await settle('waiting', null);
  await settle('open');
  await stores.transfers.note('open', { status: 'batched', transaction: BATCH, nextCheckAt: 9 });
  await settle('there');
  expect(await compare('waiting', 'open', 'there')).toMatchObject([
    { kind: 'unread', detail: 'its batch is not known yet' },
    { kind: 'unread', detail: 'its batch is not known yet' },
    { kind: 'unread', detail: 'the receipt of its batch cannot be read' },
  ]);
  both(receiptOf([{ address: WALLET, topics: [topic(randomBytes(32))], data: word(500n) }]));
  expect(await compare('there')).toMatchObject([{ kind: 'unread', detail: 'no credit can be read in its batch' }]);
});
