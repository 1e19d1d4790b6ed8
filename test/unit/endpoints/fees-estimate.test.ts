import { describe, expect, test } from 'vitest';
import { feesEstimateFree, feesEstimatePaid } from '../../../src/endpoints/fees-estimate.ts';
import { NO_COLLECTOR } from '../../../src/store/chain/collector-status.ts';
import { createChainReads } from '../../../src/store/chain/reads.ts';
import { emptyChainDatabase, putBlocks } from '../../support/chain/chain-rows.ts';
import { RpcFault } from '../../support/chain/rpc-server.ts';
import { header, NOW_SECONDS, run, useFixture } from './fixture.ts';

const given = useFixture();

describe('fees/estimate', () => {
  test('free: the exact cost at the current base fee', async () => {
    expect(await run(feesEstimateFree, given().sources, { gas: 51_000 })).toEqual({
      gas: 51_000,
      baseFeeGwei: '20.130000001',
      costUsdc: '0.001026630000051',
      asOfBlock: 1000,
      source: given().source,
    });
  });

  test('free: answers from the collector while it is current, without asking the chain, else from the chain', async () => {
    const db = emptyChainDatabase();
    putBlocks(db, [{ number: 998, at: NOW_SECONDS - 1, baseFee: 22e9 }]);
    const status = { ...NO_COLLECTOR.status(), head: { number: 1000, hash: '0x00' as const, at: NOW_SECONDS } };
    const sources = (headCheckedMs: number) => ({
      ...given().sources,
      reads: createChainReads(db),
      collector: { status: () => ({ ...status, headCheckedMs }) },
    });
    let asked = 0;
    const { eth_getBlockByNumber } = given().node.methods;
    given().node.methods.eth_getBlockByNumber = (params) => {
      asked++;
      return eth_getBlockByNumber?.(params);
    };
    const now = given().sources.clock.nowMs();
    for (let gas = 1; gas <= 20; gas++) {
      expect(await run(feesEstimateFree, sources(now - 4000), { gas })).toMatchObject({
        baseFeeGwei: '22',
        asOfBlock: 998,
      });
    }
    expect(asked).toBe(0);
    expect(await run(feesEstimateFree, sources(now - 6000), { gas: 1 })).toMatchObject({ asOfBlock: 1000 });
    expect(asked).toBe(1);
  });

  test('paid: adds the next block, announced by the header, and the last hour', async () => {
    given().node.methods.eth_getBlockByNumber = ([block]) => ({
      ...header(block === 'latest' ? 1000 : Number(block)),
      extraData: `0x${(20_080_000_000).toString(16).padStart(16, '0')}`,
    });
    const reply = await run(feesEstimatePaid, given().sources, { gas: 21_000 });
    expect(reply).toMatchObject({ nextBaseFeeGwei: '20.08', costNextUsdc: '0.00042168', nextBaseFeeExact: true });
    expect(reply.lastHour).toMatchObject({ blocks: 1001, seconds: 500 });
    expect((reply.lastHour as { percentiles: unknown[] }).percentiles[2]).toEqual({
      percentile: 50,
      baseFeeGwei: '20',
      costUsdc: '0.00042',
    });
  });

  test('paid: without an announcement the next fee is an estimate and marked as one', async () => {
    expect(await run(feesEstimatePaid, given().sources, { gas: 21_000 })).toMatchObject({
      nextBaseFeeGwei: '20.130000001',
      nextBaseFeeExact: false,
    });
  });

  test('paid: takes the hour from the collector when it has it, else from the chain', async () => {
    const db = emptyChainDatabase();
    const sources = {
      ...given().sources,
      reads: createChainReads(db),
      collector: { status: () => ({ ...NO_COLLECTOR.status(), blockTimeSeconds: 10 }) },
    };
    // An hour of ten-second blocks up to block 995; half of them at 22 gwei, and one before the hour.
    const blocks = Array.from({ length: 361 }, (_, back) => ({
      number: 995 - back,
      at: NOW_SECONDS - 2 - back * 10,
      baseFee: (back % 2 === 0 ? 22 : 21) * 1e9,
    }));
    putBlocks(db, blocks);
    expect(await run(feesEstimatePaid, sources, { gas: 21_000 })).toMatchObject({
      lastHour: {
        blocks: 360,
        seconds: 3600,
        percentiles: [{ percentile: 5, baseFeeGwei: '21' }, {}, {}, {}, { baseFeeGwei: '22' }],
      },
    });
    expect(given().node.count('eth_feeHistory')).toBe(0);
    // A tenth of the hour is missing, so it does not count as the hour.
    db.exec('DELETE FROM blocks WHERE number % 10 = 0');
    expect(await run(feesEstimatePaid, sources, { gas: 21_000 })).toMatchObject({ lastHour: { blocks: 1001 } });
    expect(given().node.count('eth_feeHistory')).toBe(1);
  });

  test('paid: a collector that is behind is not used', async () => {
    const db = emptyChainDatabase();
    putBlocks(
      db,
      Array.from({ length: 400 }, (_, back) => ({ number: 989 - back, at: NOW_SECONDS - back * 10 })),
    );
    const collector = { status: () => ({ ...NO_COLLECTOR.status(), blockTimeSeconds: 10 }) };
    const sources = { ...given().sources, reads: createChainReads(db), collector };
    expect(await run(feesEstimatePaid, sources, { gas: 1 })).toMatchObject({ lastHour: { blocks: 1001 } });
  });

  test('paid: simultaneous buyers share one read of the head and one of the hour, each with its own gas', async () => {
    const { node, sources } = given();
    const replies = await Promise.all(
      Array.from({ length: 30 }, (_, at) => run(feesEstimatePaid, sources, { gas: 21_000 + at })),
    );
    expect(replies.map(({ gas }) => gas)).toEqual(Array.from({ length: 30 }, (_, at) => 21_000 + at));
    expect(replies.every(({ asOfBlock }) => asOfBlock === 1000)).toBe(true);
    // The second header belongs to the hour: the time at which its span begins.
    expect([node.count('eth_feeHistory'), node.count('eth_getBlockByNumber')]).toEqual([1, 2]);
  });

  test('paid: a later buyer gets a later head, and the hour is read again', async () => {
    const { node, sources } = given();
    let head = 999;
    node.methods.eth_getBlockByNumber = ([block]) => header(block === 'latest' ? head : Number(block));
    expect(await run(feesEstimatePaid, sources, { gas: 1 })).toMatchObject({
      asOfBlock: 999,
      lastHour: { blocks: 1000 },
    });
    head = 1000;
    expect(await run(feesEstimatePaid, sources, { gas: 1 })).toMatchObject({
      asOfBlock: 1000,
      lastHour: { blocks: 1001 },
    });
    expect(node.count('eth_feeHistory')).toBe(2);
  });

  test('paid: a failure reaches every buyer who waited for it, and no later one', async () => {
    const { node, sources } = given();
    const { eth_feeHistory } = node.methods;
    node.methods.eth_feeHistory = () => {
      throw new RpcFault(-32000, 'no history');
    };
    const both = await Promise.allSettled([1, 2].map((gas) => run(feesEstimatePaid, sources, { gas })));
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    if (eth_feeHistory) node.methods.eth_feeHistory = eth_feeHistory;
    expect(await run(feesEstimatePaid, sources, { gas: 1 })).toMatchObject({ lastHour: { blocks: 1001 } });
  });
});
