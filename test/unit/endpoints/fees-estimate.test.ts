import { describe, expect, test } from 'vitest';
import { feesEstimateFree, feesEstimatePaid } from '../../../src/endpoints/fees-estimate.ts';
import { header, run, useFixture } from './fixture.ts';

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

  test('paid: without an announcement the next fee is an estimate and said to be', async () => {
    expect(await run(feesEstimatePaid, given().sources, { gas: 21_000 })).toMatchObject({
      nextBaseFeeGwei: '20.130000001',
      nextBaseFeeExact: false,
    });
  });
});
