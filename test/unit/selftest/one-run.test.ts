import { encodeAbiParameters, encodeEventTopics, type Hex, parseAbi } from 'viem';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { OpenChainClient } from '../../../src/chain/rpc/client.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import { createStockBuyer, createWalletReads } from '../../../src/selftest/buyer.ts';
import { createRun } from '../../../src/selftest/self-test.ts';
import { openClient } from '../../support/chain/client.ts';
import { RpcFault, type RpcServer, startRpcServer } from '../../support/chain/rpc-server.ts';
import { createManualClock, type ManualClock } from '../../support/manual-clock.ts';
import { newKey, USDC } from '../../support/usdc/payments.ts';
import { receipt, type ScriptedSeller, SELLER, startScriptedSeller, status, TRANSACTION } from './scripted-seller.ts';

const abi = parseAbi([
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
]);
const { privateKey, address: WALLET } = newKey();
const OTHER = `0x${'99'.repeat(20)}` as const;
const START = 1_795_200_000_000;
const wordOf = (value: bigint): Hex => `0x${value.toString(16).padStart(64, '0')}`;
const used = (authorizer: Hex, nonce: Hex, address: string = USDC) => ({
  address,
  topics: encodeEventTopics({ abi, eventName: 'AuthorizationUsed', args: { authorizer, nonce } }),
  data: '0x',
});
const transfer = (from: Hex, to: Hex, value: bigint, address: string = USDC) => ({
  address,
  topics: encodeEventTopics({ abi, eventName: 'Transfer', args: { from, to } }),
  data: encodeAbiParameters([{ type: 'uint256' }], [value]),
});

let shop: ScriptedSeller;
let node: RpcServer;
let chain: OpenChainClient;
let clock: ManualClock;
/** The chain's state. Each read of the head is a block later. `usedFrom` is the block of an authorization's use. */
let state: {
  head: number;
  balances: [number, bigint][];
  usedFrom: Map<string, number>;
  logs: (nonce: Hex) => object[];
};

beforeEach(async () => {
  shop = await startScriptedSeller();
  shop.answers['/fail'] = status(500);
  state = {
    head: 100,
    balances: [
      [0, 10_000n],
      [102, 9500n],
    ],
    usedFrom: new Map(),
    logs: (nonce) => [used(WALLET, nonce), transfer(WALLET, SELLER, 500n)],
  };
  node = await startRpcServer({
    eth_blockNumber: () => `0x${(state.head++).toString(16)}`,
    eth_getTransactionReceipt: () => ({
      status: '0x1',
      blockNumber: '0x66',
      logs: state.logs(shop.shown[0]?.nonce ?? '0x'),
    }),
    eth_call: (params) => {
      const [{ data }, block] = params as [{ data: string }, string];
      if (data.startsWith('0x70a08231')) {
        return wordOf(state.balances.findLast(([from]) => from <= Number(block))?.[1] ?? 0n);
      }
      return wordOf(
        (state.usedFrom.get(`0x${data.slice(-64)}`) ?? Number.POSITIVE_INFINITY) <= Number(block) ? 1n : 0n,
      );
    },
  });
  chain = openClient({ rpcUrls: [node.url], chainId: 5042, timeoutMs: 30_000 });
  clock = createManualClock(START);
});
afterEach(async () => {
  await Promise.all([chain.close(), shop.stop(), node.stop()]);
});

/** Runs with a clock that moves by itself between the chain's answers, unless the test moves it. */
async function run({
  signal = new AbortController().signal,
  moving = true,
  time = clock as Clock,
  timeoutMs = 30_000,
} = {}) {
  const key = bytesToHex(privateKey);
  const once = createRun({
    buyer: createStockBuyer({ privateKey: key, network: 'eip155:5042', asset: USDC, seller: SELLER }),
    reads: createWalletReads({ chain, usdc: USDC, wallet: WALLET, seller: SELLER, clock: time }),
    paid: { url: `${shop.url}/paid`, units: 500n },
    failing: { url: `${shop.url}/fail`, units: 500n },
    timeoutMs,
    clock: time,
    log: { warn: () => undefined },
  });
  const mover = setInterval(() => void (moving && clock.pendingSleeps().length > 1 && clock.advance(500)), 2);
  try {
    return await once(signal);
  } finally {
    clearInterval(mover);
  }
}

const GOOD = { latencyMs: expect.any(Number), transaction: hexToBytes(TRANSACTION) };
const NOTHING = { latencyMs: null, transaction: null, notCharged: null };

describe('a run of the self-test', () => {
  test('is ok when the call is paid for on the chain and the failing call’s payment stays unused', async () => {
    expect(await run()).toEqual({ at: START, ok: true, ...GOOD, notCharged: true, reason: null });
    expect(shop.shown.map(({ value }) => value)).toEqual(['500', '500']);
    expect(clock.pendingSleeps()).toEqual([]);
  });

  test.each<[string, string, () => void]>([
    ['the wallet cannot pay both calls', 'wallet_short_of_funds', () => (state.balances = [[0, 999n]])],
    ['the service is unreachable', 'purchase_unreachable', () => void shop.stop()],
    ['more is asked than listed', 'purchase_terms_refused', () => (shop.terms = { ...shop.terms, amount: '501' })],
    ['the payment is refused', 'purchase_answered_402', () => (shop.answers['/paid'] = status(402))],
    ['the settlement is unknown', 'purchase_answered_503', () => (shop.answers['/paid'] = status(503))],
    [
      'the call is given away',
      'purchase_answered_200',
      () => (shop.challenge = (response) => void response.writeHead(200).end('{}')),
    ],
  ])('%s: %s, and nothing else is known', async (_what, reason, arrange) => {
    arrange();
    expect(await run()).toEqual({ at: START, ok: false, ...NOTHING, reason });
  });

  test('an answer without a receipt is not ok, however fast it was', async () => {
    shop.answers['/paid'] = (response) => void response.writeHead(200).end('{}');
    const { latencyMs } = GOOD;
    expect(await run()).toEqual({ at: START, ok: false, ...NOTHING, latencyMs, reason: 'purchase_without_receipt' });
  });

  test.each<[string, (nonce: Hex) => object[]]>([
    ['no log', () => []],
    ['another authorization', () => [used(WALLET, wordOf(7n)), transfer(WALLET, SELLER, 500n)]],
    ['the transfer before the use', (nonce) => [transfer(WALLET, SELLER, 500n), used(WALLET, nonce)]],
    ['another amount', (nonce) => [used(WALLET, nonce), transfer(WALLET, SELLER, 499n)]],
    ['another recipient', (nonce) => [used(WALLET, nonce), transfer(WALLET, OTHER, 500n)]],
    ['another payer', (nonce) => [used(OTHER, nonce), transfer(OTHER, SELLER, 500n)]],
    ['another token', (nonce) => [used(WALLET, nonce, OTHER), transfer(WALLET, SELLER, 500n, OTHER)]],
    ['a use in between', (nonce) => [used(WALLET, nonce), used(OTHER, wordOf(7n)), transfer(WALLET, SELLER, 500n)]],
  ])('a transaction with %s is no payment', async (_what, logs) => {
    state.logs = logs;
    expect(await run()).toEqual({
      at: START,
      ok: false,
      ...GOOD,
      notCharged: null,
      reason: 'transaction_is_no_payment',
    });
  });

  test('a batch that holds others’ payments too is a payment', async () => {
    state.logs = (nonce) => [
      ...[used(OTHER, wordOf(1n)), transfer(OTHER, SELLER, 7n), used(WALLET, nonce), transfer(WALLET, SELLER, 500n)],
      ...[used(OTHER, wordOf(2n)), transfer(OTHER, SELLER, 7n)],
    ];
    expect(await run()).toMatchObject({ ok: true });
  });

  test('a failing call whose payment is used some blocks after its answer was charged', async () => {
    shop.answers['/fail'] = (response, { nonce }) => {
      state.usedFrom.set(nonce, state.head + 3);
      response.writeHead(500).end('{}');
    };
    const charged = { notCharged: false, reason: 'failing_call_used_its_payment' };
    expect(await run()).toEqual({ at: START, ok: false, ...GOOD, ...charged });
  });

  test.each([
    ['less', 9499n],
    ['more', 9501n],
    ['twice the price less', 9000n],
  ])('a wallet that holds %s than the price of one call explains fails the run', async (_what, balance) => {
    state.balances = [
      [0, 10_000n],
      [102, balance],
    ];
    expect(await run()).toEqual({ at: START, ok: false, ...GOOD, notCharged: false, reason: 'balance_differs' });
  });

  test.each([200, 402, 429, 503])(
    'a failing call that answers %i fails the run, though nothing was charged',
    async (code) => {
      shop.answers['/fail'] = status(code);
      const unseen = { notCharged: null, reason: `failing_call_answered_${code}` };
      expect(await run()).toEqual({ at: START, ok: false, ...GOOD, ...unseen });
    },
  );

  test('a failing call whose connection breaks is looked up too', async () => {
    const cut = (charging: boolean) => {
      shop.answers['/fail'] = (response, { nonce }) => {
        if (charging) state.usedFrom.set(nonce, state.head);
        response.destroy();
      };
    };
    cut(false);
    expect(await run()).toMatchObject({ ok: false, notCharged: null, reason: 'failing_call_unreachable' });
    cut(true);
    state.head = 100;
    state.logs = () => [used(WALLET, shop.shown.at(-1)?.nonce ?? '0x'), transfer(WALLET, SELLER, 500n)];
    expect(await run()).toMatchObject({ ok: false, notCharged: false, reason: 'failing_call_used_its_payment' });
  });

  test('a provider that is behind is asked again instead of being believed', async () => {
    let looks = 0;
    const { eth_getTransactionReceipt: known } = node.methods;
    node.methods.eth_getTransactionReceipt = (params) => (looks++ < 2 ? null : known?.(params));
    expect(await run()).toMatchObject({ ok: true });
    expect(looks).toBe(3);
  });

  test('ends when its time is over, with the findings so far', async () => {
    shop.answers['/paid'] = () => void clock.advance(30_000);
    expect(await run({ moving: false })).toEqual({ at: START, ok: false, ...NOTHING, reason: 'timed_out' });
    shop.answers['/paid'] = (response) => void response.writeHead(200, receipt()).end('{}');
    node.methods.eth_getTransactionReceipt = () => null;
    expect(await run()).toMatchObject({ ok: false, ...GOOD, notCharged: null, reason: 'timed_out' });
    expect(clock.pendingSleeps()).toEqual([]);
  });

  test('ends in time by the machine’s clock too, while it waits for a missing transaction', async () => {
    node.methods.eth_getTransactionReceipt = () => null;
    const late = await run({ time: systemClock, timeoutMs: 300 });
    expect(late).toMatchObject({ ok: false, notCharged: null, reason: 'timed_out' });
  });

  test('an unexpected error fails the run and is reported as ours', async () => {
    node.methods.eth_getTransactionReceipt = () => {
      throw new RpcFault(3, 'no');
    };
    expect(await run()).toMatchObject({ ok: false, ...GOOD, reason: 'internal_error' });
  });

  test('an aborted run returns no result', async () => {
    const stop = new AbortController();
    shop.answers['/paid'] = () => stop.abort(new Error('the self-test stops'));
    expect(await run({ signal: stop.signal })).toBeNull();
    expect(clock.pendingSleeps()).toEqual([]);
  });
});
