import { describe, expect, test } from 'vitest';
import { NO_COLLECTOR } from '../../../src/collector/store/facts.ts';
import { createChainReads } from '../../../src/collector/store/reads.ts';
import { feesEstimateFree, feesEstimatePaid } from '../../../src/endpoints/fees/estimate.ts';
import { UpstreamFailed } from '../../../src/errors.ts';
import { emptyChainDatabase, putBlocks } from '../../support/chain/chain-rows.ts';
import { RpcFault } from '../../support/chain/rpc-server.ts';
import { header, NOW_SECONDS, run, useFixture } from './fixture.ts';

const given = useFixture();

describe('fees/estimate', () => {
  test('free: the cost at the current base fee, rounded up in USDC and exact in base units', async () => {
    expect(await run(feesEstimateFree, given().sources, { gas: 51_000 })).toEqual({
      gas: 51_000,
      baseFeeGwei: '20.130000001',
      costUsdc: '0.001027',
      costWei: '1026630000051000',
      asOfBlock: 1000,
      ageSeconds: 0,
      detail: expect.any(Object),
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
    expect(reply).toMatchObject({
      nextBaseFeeGwei: '20.08',
      costNextUsdc: '0.000422',
      costNextWei: '421680000000000',
      nextBaseFeeExact: true,
    });
    expect(reply.lastHour).toMatchObject({ blocks: 1001, seconds: 500 });
    expect((reply.lastHour as { percentiles: unknown[] }).percentiles[2]).toEqual({
      percentile: 50,
      baseFeeGwei: '20',
      costUsdc: '0.00042',
    });
  });

  test('paid: a node whose fee history lacks the newest block is answered from, with that block’s own fee', async () => {
    const { node, sources } = given();
    const { eth_feeHistory } = node.methods;
    node.methods.eth_feeHistory = ([count, newest]) => {
      if (Number(newest) === 1000) throw new RpcFault(-32000, 'request beyond head block: requested 1000, head 999');
      return eth_feeHistory?.([count, newest]);
    };
    const { lastHour } = await run(feesEstimatePaid, sources, { gas: 1 });
    expect(lastHour).toMatchObject({ blocks: 1001, seconds: 500 });
    expect((lastHour as { percentiles: unknown[] }).percentiles.at(-1)).toMatchObject({ baseFeeGwei: '20' });
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
    const sources = { ...given().sources, reads: createChainReads(db) };
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

  test('paid: a chain of 25 minutes whose node refuses old fee history is answered from the collector', async () => {
    const { sources, node } = given();
    node.methods.eth_feeHistory = () => {
      throw new RpcFault(-32000, 'header not found');
    };
    const db = emptyChainDatabase();
    putBlocks(
      db,
      Array.from({ length: 1000 }, (_, back) => ({ number: 1000 - back, at: NOW_SECONDS - Math.floor(back * 1.5) })),
    );
    expect(await run(feesEstimatePaid, { ...sources, reads: createChainReads(db) }, { gas: 1 })).toMatchObject({
      asOfBlock: 1000,
      lastHour: { blocks: 1000, seconds: 1498 },
    });
    expect(node.count('eth_feeHistory')).toBe(0);
  });

  test('paid: an hour that was collected in part is answered from the chain, and in part while the node refuses old fee history', async () => {
    const { sources, node } = given();
    const db = emptyChainDatabase();
    putBlocks(
      db,
      Array.from({ length: 120 }, (_, back) => ({ number: 1000 - back, at: NOW_SECONDS - Math.floor(back / 2) })),
    );
    const withPart = { ...sources, reads: createChainReads(db) };
    expect(await run(feesEstimatePaid, withPart, { gas: 1 })).toMatchObject({ lastHour: { blocks: 1001 } });
    node.methods.eth_feeHistory = () => {
      throw new RpcFault(-32000, 'header not found');
    };
    putBlocks(db, [{ number: 1001, at: NOW_SECONDS }]);
    expect(await run(feesEstimatePaid, withPart, { gas: 1 })).toMatchObject({ lastHour: { blocks: 121, seconds: 59 } });
  });

  test.each([feesEstimateFree, feesEstimatePaid])(
    'while the chain is away the newest collected fee is answered for ten minutes, with its age',
    async (endpoint) => {
      const { sources, node } = given();
      await node.stop();
      const db = emptyChainDatabase();
      putBlocks(db, [
        { number: 999, at: NOW_SECONDS - 600, baseFee: 21e9 },
        { number: 1000, at: NOW_SECONDS - 599, baseFee: 22e9, nextBaseFee: 22_100_000_000 },
      ]);
      let nowMs = NOW_SECONDS * 1000;
      const away = { ...sources, reads: createChainReads(db), clock: { ...sources.clock, nowMs: () => nowMs } };
      expect(await run(endpoint, away, { gas: 1 })).toMatchObject({
        baseFeeGwei: '22',
        asOfBlock: 1000,
        ageSeconds: 599,
        source: { name: 'Collected from eip155:5042 over JSON-RPC' },
        ...(endpoint === feesEstimatePaid && { nextBaseFeeGwei: '22.1', lastHour: { blocks: 2, seconds: 1 } }),
      });
      nowMs += 2000;
      await expect(run(endpoint, away, { gas: 1 })).rejects.toBeInstanceOf(UpstreamFailed);
    },
  );

  test.each([feesEstimateFree, feesEstimatePaid])(
    'a clock that has moved an hour ahead of the collector changes no price: the chain is asked',
    async (endpoint) => {
      const { sources } = given();
      const db = emptyChainDatabase();
      putBlocks(db, [{ number: 900, at: NOW_SECONDS - 50, baseFee: 25e9 }]);
      const nowMs = (NOW_SECONDS + 3600) * 1000;
      const ahead = { ...sources, reads: createChainReads(db), clock: { ...sources.clock, nowMs: () => nowMs } };
      expect(await run(endpoint, ahead, { gas: 1 })).toMatchObject({
        baseFeeGwei: '20.130000001',
        asOfBlock: 1000,
        ageSeconds: 3600,
      });
    },
  );

  test('a node that accepts the request and never answers is waited for three seconds, then the collected fee is answered', async () => {
    const { sources } = given();
    const db = emptyChainDatabase();
    putBlocks(db, [{ number: 1000, at: NOW_SECONDS - 5, baseFee: 22e9 }]);
    const waited: number[] = [];
    const sleep = async (ms: number) => void waited.push(ms);
    // A provider's own time-out would end the wait too; the silent chain has none.
    const chain = { ...sources.chain, batch: () => new Promise<never>(() => {}) };
    const silent = { ...sources, chain, reads: createChainReads(db), clock: { ...sources.clock, sleep } };
    expect(await run(feesEstimateFree, silent, { gas: 1 })).toMatchObject({ baseFeeGwei: '22', ageSeconds: 5 });
    expect(waited).toEqual([3000]);
  });

  test('paid: an estimate of the next fee never lies below the floor', async () => {
    given().node.methods.eth_getBlockByNumber = ([block]) => ({
      ...header(block === 'latest' ? 1000 : Number(block)),
      gasUsed: '0x0',
      baseFeePerGas: `0x${(20e9).toString(16)}`,
    });
    const sources = { ...given().sources, collected: { ...given().sources.collected, floorWei: 20_000_000_000n } };
    expect(await run(feesEstimatePaid, sources, { gas: 1 })).toMatchObject({
      nextBaseFeeGwei: '20',
      nextBaseFeeExact: false,
    });
  });
});
