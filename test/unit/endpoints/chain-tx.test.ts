import { describe, expect, test } from 'vitest';
import { TRANSFER_TOPIC } from '../../../src/chain/contracts.ts';
import { SWAP_TOPIC } from '../../../src/chain/dex.ts';
import { ARC_SYSTEM_ADDRESS } from '../../../src/chain/erc20.ts';
import type { ChainClient } from '../../../src/chain/rpc/client.ts';
import { createChainReads } from '../../../src/collector/store/reads.ts';
import { chainTx } from '../../../src/endpoints/chain/tx.ts';
import { NotFound } from '../../../src/errors.ts';
import { hexToBytes } from '../../../src/lib/hex.ts';
import { emptyChainDatabase } from '../../support/chain/chain-rows.ts';
import { openClient } from '../../support/chain/client.ts';
import {
  ALICE,
  address,
  BOB,
  HASH,
  header,
  hex,
  NOW_SECONDS,
  number,
  run,
  TOKEN,
  USDC,
  useFixture,
} from './fixture.ts';

/** Parsed JSON. */
type Reply = Record<string, unknown>;

const given = useFixture();

describe('chain/tx', () => {
  const topic = (of: string) => `0x${of.slice(2).padStart(64, '0')}`;
  const log = (emitter: string, value: bigint, logIndex: number, extra: string[] = []) => ({
    address: emitter,
    topics: [TRANSFER_TOPIC, topic(ALICE), topic(BOB), ...extra],
    data: number(value),
    logIndex: hex(logIndex),
  });
  const transaction = {
    hash: HASH,
    blockNumber: hex(900),
    from: ALICE,
    to: USDC,
    value: '0x0',
    input: '0xa9059cbb00',
    nonce: '0x7',
    gas: hex(65_000),
    gasPrice: hex(20_130_000_002),
    maxFeePerGas: hex(30_000_000_000),
    maxPriorityFeePerGas: hex(5),
  };
  const receipt = {
    transactionHash: HASH,
    blockNumber: hex(900),
    status: '0x1',
    gasUsed: hex(51_001),
    effectiveGasPrice: hex(20_130_000_006),
    logs: [] as unknown[],
  };
  const answers = (found: unknown, settled: unknown) => {
    given().node.methods.eth_getTransactionByHash = () => found;
    given().node.methods.eth_getTransactionReceipt = () => settled;
  };

  test('every movement once, with symbols and human amounts', async () => {
    const logs = [
      log(ARC_SYSTEM_ADDRESS, 12_500_000n * 10n ** 12n, 3),
      log(USDC, 12_500_000n, 4),
      log(TOKEN, 15n * 10n ** 17n, 5),
      log(TOKEN, 9n, 6, [number(1n)]),
      log(address('99'), 42n, 7),
      log(ARC_SYSTEM_ADDRESS, 1n, 8),
    ];
    answers(transaction, { ...receipt, logs });
    const parties = { from: ALICE, to: BOB };
    expect(await run(chainTx, given().sources, { hash: HASH })).toEqual({
      hash: HASH,
      status: 'success',
      final: true,
      block: 900,
      at: NOW_SECONDS - 50,
      confirmations: 101,
      from: ALICE,
      to: USDC,
      toLabel: 'USDC',
      contractCreated: null,
      kind: 'tokenTransfer',
      method: { selector: '0xa9059cbb', name: 'transfer', signature: 'transfer(address,uint256)' },
      nonce: 7,
      valueUsdc: '0',
      valueWei: '0',
      gasLimit: 65_000,
      gasUsed: 51_001,
      maxFeePerGas: { wei: '30000000000', gwei: '30' },
      maxPriorityFeePerGas: { wei: '5', gwei: '0.000000005' },
      gasPrice: { wei: '20130000006', gwei: '20.130000006' },
      tip: { wei: '5', gwei: '0.000000005' },
      feeUsdc: '0.001027',
      feeWei: '1026650130306006',
      transfers: [
        { token: USDC, symbol: 'USDC', decimals: 6, ...parties, amount: '12.5', amountRaw: '12500000', logIndex: 4 },
        {
          token: TOKEN,
          symbol: 'TKN',
          decimals: 18,
          ...parties,
          amount: '1.5',
          amountRaw: '1500000000000000000',
          logIndex: 5,
        },
        { token: address('99'), symbol: null, decimals: null, ...parties, amount: null, amountRaw: '42', logIndex: 7 },
        {
          token: ARC_SYSTEM_ADDRESS,
          symbol: 'USDC',
          decimals: 18,
          ...parties,
          amount: '0.000000000000000001',
          amountRaw: '1',
          logIndex: 8,
        },
      ],
      transfersTruncated: false,
      swaps: [],
      swapsTruncated: false,
      pending: null,
      explorerUrl: `https://explorer.test/tx/${HASH}`,
      asOfBlock: 1000,
      source: given().source,
    });
  });

  test('unknown is 404; pending has nulls; reverted keeps its fee', async () => {
    answers(null, null);
    await expect(run(chainTx, given().sources, { hash: HASH })).rejects.toBeInstanceOf(NotFound);
    answers({ ...transaction, blockNumber: null, input: '0x', value: hex(10n ** 18n + 1n) }, null);
    expect(await run(chainTx, given().sources, { hash: HASH })).toMatchObject({
      status: 'pending',
      final: false,
      confirmations: 0,
      gasPrice: null,
      tip: null,
      block: null,
      at: null,
      gasUsed: null,
      feeUsdc: null,
      feeWei: null,
      kind: 'nativeTransfer',
      valueUsdc: '1',
      valueWei: '1000000000000000001',
      transfers: [],
    });
    answers(transaction, { ...receipt, status: '0x0' });
    expect(await run(chainTx, given().sources, { hash: HASH })).toMatchObject({
      status: 'reverted',
      feeUsdc: '0.001027',
      feeWei: '1026650130306006',
    });
  });

  test('a deployment names its contract', async () => {
    answers({ ...transaction, to: null }, { ...receipt, contractAddress: TOKEN.toUpperCase().replace('0X', '0x') });
    expect(await run(chainTx, given().sources, { hash: HASH })).toMatchObject({
      kind: 'deploy',
      to: null,
      toLabel: null,
      method: null,
      contractCreated: TOKEN,
    });
  });

  test.each([
    [200, 200, false],
    [201, 200, true],
  ])('%i transfers list %i', async (count, listed, truncated) => {
    answers(transaction, { ...receipt, logs: Array.from({ length: count }, (_, at) => log(TOKEN, 1n, at)) });
    const reply = await run(chainTx, given().sources, { hash: HASH });
    expect(reply.transfers).toHaveLength(listed);
    expect(reply.transfersTruncated).toBe(truncated);
  });

  test('a gas price in place of a maximum is its maximum, without a tip on offer; there is no tip without a base fee', async () => {
    const { maxFeePerGas: _, maxPriorityFeePerGas: __, ...legacy } = transaction;
    answers(legacy, receipt);
    given().node.methods.eth_getBlockByNumber = ([block]) => ({ ...header(Number(block)), baseFeePerGas: null });
    expect(await run(chainTx, given().sources, { hash: HASH })).toMatchObject({
      maxFeePerGas: { wei: '20130000002' },
      maxPriorityFeePerGas: null,
      gasPrice: { wei: '20130000006' },
      tip: null,
    });
  });

  describe('pending', () => {
    const waiting = { ...transaction, blockNumber: null };
    const read = async () => (await run(chainTx, given().sources, { hash: HASH })) as { pending: Reply };

    test('is told what it waits for, and since when we know of it', async () => {
      const { node, sources } = given();
      answers(waiting, null);
      let nowMs = NOW_SECONDS * 1000;
      const clocked = { ...sources, clock: { ...sources.clock, nowMs: () => nowMs } };
      const ask = async () => (await run(chainTx, clocked, { hash: HASH })).pending;
      expect(await ask()).toEqual({
        firstSeenAt: NOW_SECONDS,
        heldBy: [],
        unknownReason: null,
        accountNonce: 7,
        nextBaseFee: { wei: '20130000001', gwei: '20.130000001' },
        floorGwei: null,
        asOfBlock: 1000,
      });
      nowMs += 60_000;
      node.methods.eth_getTransactionCount = () => '0x5';
      node.methods.eth_getBalance = () => '0x1';
      answers({ ...waiting, maxFeePerGas: hex(19_000_000_000) }, null);
      expect(await ask()).toMatchObject({
        firstSeenAt: NOW_SECONDS,
        heldBy: ['nonceGap', 'feeTooLow', 'balanceTooLow'],
        accountNonce: 5,
      });
      clocked.collected = { ...sources.collected, floorWei: 20_000_000_000n };
      expect(await ask()).toMatchObject({ heldBy: ['nonceGap', 'feeBelowFloor', 'balanceTooLow'], floorGwei: '20' });
      node.methods.eth_getTransactionCount = () => '0x8';
      expect(await ask()).toMatchObject({ heldBy: ['nonceUsed'] });
    });

    test('is answered as mined when its receipt comes with the second read', async () => {
      answers(waiting, null);
      let asked = 0;
      given().node.methods.eth_getTransactionReceipt = () => {
        asked += 1;
        return asked === 1 ? null : { ...receipt, blockNumber: hex(1001), logs: [log(TOKEN, 3n, 1)] };
      };
      given().node.methods.eth_getTransactionCount = () => '0x8';
      expect(await run(chainTx, given().sources, { hash: HASH })).toMatchObject({
        status: 'success',
        final: true,
        block: 1001,
        confirmations: 1,
        asOfBlock: 1001,
        pending: null,
        transfers: [{ token: TOKEN, amountRaw: '3' }],
      });
    });

    test('stays an answer when the provider does not say what it waits for, and says so', async () => {
      answers(waiting, null);
      delete given().node.methods.eth_getTransactionCount;
      const { pending } = await read();
      expect(pending).toMatchObject({ heldBy: null, accountNonce: null, nextBaseFee: null, asOfBlock: null });
      expect(pending.unknownReason).toContain('did not say');
    });

    test.each([
      ...(['hang', 'reset', '500', '429', 'garbage', 'no-json-rpc', 'wrong-ids', 'missing-entry'] as const),
      ...(['object-for-batch', 'too-large', 'stalled-body'] as const),
    ])(
      'stays an answer when the second read fails with %s; the first read’s failure is one of the call',
      async (fault) => {
        answers(waiting, null);
        const { node, sources } = given();
        let failing = 'eth_getTransactionCount';
        const fails = (calls: readonly { method: string }[]) => calls.some(({ method }) => method === failing);
        node.fault = (requests) => (fails(requests) ? fault : null);
        // Only the read that fails has a short time-out, for which the test waits when the node hangs.
        const hasty = openClient({ rpcUrls: [node.url], chainId: 5042, timeoutMs: 2000 });
        const batch: ChainClient['batch'] = (calls, options) =>
          (fails(calls) ? hasty : sources.chain).batch(calls, options);
        const ask = () => run(chainTx, { ...sources, chain: { ...sources.chain, batch } }, { hash: HASH });
        try {
          expect((await ask()).pending).toMatchObject({ firstSeenAt: NOW_SECONDS, heldBy: null });
          failing = 'eth_getTransactionByHash';
          await expect(ask()).rejects.toMatchObject({ charged: false });
        } finally {
          await hasty.close();
        }
      },
    );

    test('is answered without what keeps it when the chain does not say it in time', async () => {
      answers(waiting, null);
      const late = { ...given().sources.clock, sleep: async () => {} };
      const { pending } = await run(chainTx, { ...given().sources, clock: late }, { hash: HASH });
      expect(pending).toMatchObject({ firstSeenAt: NOW_SECONDS, heldBy: null });
    });
  });

  describe('swaps', () => {
    const [POOL, EURC] = [address('c1'), address('e0')];
    const moved = (token: string, from: string, to: string, value: bigint, logIndex: number) => ({
      address: token,
      topics: [TRANSFER_TOPIC, topic(from), topic(to)],
      data: number(value),
      logIndex: hex(logIndex),
    });
    const words = (...values: bigint[]) =>
      `0x${values.map((value) => number(BigInt.asUintN(256, value)).slice(2)).join('')}`;
    const swapped = (logIndex: number) => ({
      address: POOL,
      topics: [SWAP_TOPIC.v3, topic(ALICE), topic(ALICE)],
      logIndex: hex(logIndex),
      data: words(2_000_000n, -15n * 10n ** 17n, 1n, 1n, 1n),
    });
    const swaps = async (logs: unknown[], db = emptyChainDatabase()) => {
      answers(transaction, { ...receipt, logs });
      const sources = { ...given().sources, reads: createChainReads(db) };
      return (await run(chainTx, sources, { hash: HASH })).swaps;
    };

    test('have the tokens that the transfers show', async () => {
      const logs = [
        moved(USDC, ALICE, POOL, 2_000_000n, 1),
        moved(TOKEN, POOL, ALICE, 15n * 10n ** 17n, 2),
        swapped(3),
      ];
      expect(await swaps(logs)).toEqual([
        {
          pool: POOL,
          contract: POOL,
          family: 'v3',
          venue: null,
          logIndex: 3,
          sold: { token: USDC, symbol: 'USDC', decimals: 6, amount: '2', amountRaw: '2000000' },
          bought: { token: TOKEN, symbol: 'TKN', decimals: 18, amount: '1.5', amountRaw: '1500000000000000000' },
        },
      ]);
    });

    test('have raw amounts where no transfer shows the token', async () => {
      expect(await swaps([swapped(3)])).toMatchObject([
        {
          sold: { token: null, symbol: null, decimals: null, amount: null, amountRaw: '2000000' },
          bought: { token: null, amountRaw: '1500000000000000000' },
        },
      ]);
    });

    test.each([
      ['of a collected pool have its tokens and its venue', POOL, 'Uniswap v3', USDC],
      ['of another contract that names a collected pool do not', EURC, null, null],
    ])('%s', async (_what, emitter, venue, token) => {
      const db = emptyChainDatabase();
      db.prepare('INSERT INTO pools VALUES (?, ?, ?, ?, ?, 0, 18, 6, 1)').run(
        ...[hexToBytes(POOL), 'Uniswap v3', 'v3', hexToBytes(emitter), hexToBytes(TOKEN)],
      );
      expect(await swaps([swapped(3)], db)).toMatchObject([{ venue, sold: { token } }]);
    });

    test.each([
      [50, 50, false],
      [51, 50, true],
    ])('%i are listed as %i', async (count, listed, truncated) => {
      answers(transaction, { ...receipt, logs: Array.from({ length: count }, (_, at) => swapped(at)) });
      const reply = await run(chainTx, given().sources, { hash: HASH });
      expect([(reply.swaps as unknown[]).length, reply.swapsTruncated]).toEqual([listed, truncated]);
    });
  });

  test('no explorer, no link', async () => {
    answers(transaction, receipt);
    const reply = await run(chainTx, { ...given().sources, explorerUrl: null }, { hash: HASH });
    expect(reply.explorerUrl).toBeNull();
  });
});
