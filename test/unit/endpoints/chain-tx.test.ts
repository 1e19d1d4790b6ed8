import { describe, expect, test } from 'vitest';
import { TRANSFER_TOPIC } from '../../../src/chain/abi.ts';
import { ARC_SYSTEM_ADDRESS } from '../../../src/chain/transfers.ts';
import { chainTx } from '../../../src/endpoints/chain-tx.ts';
import { NotFound } from '../../../src/errors.ts';
import { ALICE, address, BOB, HASH, hex, NOW_SECONDS, number, run, TOKEN, USDC, useFixture } from './fixture.ts';

const given = useFixture();

describe('chain/tx', () => {
  const topic = (of: string) => `0x${of.slice(2).padStart(64, '0')}`;
  const log = (emitter: string, value: bigint, logIndex: number, extra: string[] = []) => ({
    address: emitter,
    topics: [TRANSFER_TOPIC, topic(ALICE), topic(BOB), ...extra],
    data: number(value),
    logIndex: hex(logIndex),
  });
  const transaction = { hash: HASH, blockNumber: hex(900), from: ALICE, to: USDC, value: '0x0', input: '0xa9059cbb00' };
  const receipt = {
    transactionHash: HASH,
    blockNumber: hex(900),
    status: '0x1',
    gasUsed: hex(51_001),
    effectiveGasPrice: hex(20_130_000_001),
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
      block: 900,
      at: NOW_SECONDS - 50,
      from: ALICE,
      to: USDC,
      contractCreated: null,
      kind: 'tokenTransfer',
      valueUsdc: '0',
      valueWei: '0',
      gasUsed: 51_001,
      feeUsdc: '0.001027',
      feeWei: '1026650130051001',
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
      feeWei: '1026650130051001',
    });
  });

  test('a deployment names its contract', async () => {
    answers({ ...transaction, to: null }, { ...receipt, contractAddress: TOKEN.toUpperCase().replace('0X', '0x') });
    expect(await run(chainTx, given().sources, { hash: HASH })).toMatchObject({
      kind: 'deploy',
      to: null,
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
});
