import { describe, expect, test } from 'vitest';
import { createOperationCosts } from '../../../src/collector/store/costs.ts';
import { feesForecast, slopeOf } from '../../../src/endpoints/fees/forecast.ts';
import { putBlocks } from '../../support/chain/chain-rows.ts';
import { HOUR, PROVENANCE, UNTIL, useCollected } from './collected-fixture.ts';
import { run } from './fixture.ts';

const given = useCollected();
const GWEI = 1_000_000_000;

/** A block every ten seconds for three hours, with utilisation rising by a tenth per hour. */
function fill() {
  const count = (3 * HOUR) / 10 + 1;
  const blocks = Array.from({ length: count }, (_, at) => ({
    number: 1000 - (count - 1) + at + 5000,
    at: UNTIL - (count - 1 - at) * 10,
    baseFee: 20 * GWEI + (at % 100),
    utilisation: 0.1 + (at * 10 * 0.1) / HOUR,
    nextBaseFee: 20 * GWEI,
  }));
  putBlocks(given().db, blocks);
  given().status = { ...given().status, blockTimeSeconds: 10 };
  return blocks;
}

describe('fees/forecast', () => {
  test('now, next and the band equal a recount of the blocks', async () => {
    const blocks = fill();
    // Older than a day, so not in the band.
    putBlocks(given().db, [{ number: 1, at: UNTIL - 24 * HOUR - 1, baseFee: 99 * GWEI }]);
    const sorted = blocks.map(({ baseFee }) => baseFee).sort((a, b) => a - b);
    const at = (percent: number) =>
      `20.${String(sorted[Math.ceil((percent / 100) * sorted.length) - 1]! - 20 * GWEI).padStart(9, '0')}`.replace(
        /\.?0+$/,
        '',
      );
    const reply = await run(feesForecast, given().sources);
    expect(reply).toMatchObject({
      now: { gwei: '20.00000008', block: 6000 },
      next: { gwei: '20', exact: true },
      band24h: {
        minGwei: '20',
        p5Gwei: at(5),
        medianGwei: at(50),
        p95Gwei: at(95),
        maxGwei: '20.000000099',
        blocks: 1081,
      },
      ...PROVENANCE,
    });
  });

  test('the trend’s slope is the rise of a tenth per hour', async () => {
    fill();
    const { utilisationTrend } = (await run(feesForecast, given().sources)) as {
      utilisationTrend: {
        points: { at: number; utilisation: number }[];
        slopeSharePerHour: number;
        slopePerHour: number;
      };
    };
    // The last step has one block instead of thirty, which moves the line a little.
    expect(utilisationTrend.slopeSharePerHour).toBeCloseTo(0.1, 2);
    expect(utilisationTrend.slopePerHour).toBe(utilisationTrend.slopeSharePerHour);
    expect(utilisationTrend.points).toHaveLength(24);
    expect(utilisationTrend.points.at(-1)).toEqual({ at: UNTIL, utilisationShare: 0.4, utilisation: 0.4 });
    // Thirty blocks from 25 minutes after the hour: the mean is the middle of the fifteenth and sixteenth.
    expect(utilisationTrend.points.at(-2)).toEqual({
      at: UNTIL - 300,
      utilisationShare: expect.closeTo(0.4 - 0.1 * (155 / HOUR), 5),
      utilisation: expect.closeTo(0.4 - 0.1 * (155 / HOUR), 5),
    });
    const xs = utilisationTrend.points.map(({ at }) => at / HOUR);
    const ys = utilisationTrend.points.map(({ utilisation }) => utilisation);
    const n = xs.length;
    const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
    const byTheOtherFormula =
      (n * sum(xs.map((x, i) => (x - xs[0]!) * ys[i]!)) - sum(xs.map((x) => x - xs[0]!)) * sum(ys)) /
      (n * sum(xs.map((x) => (x - xs[0]!) ** 2)) - sum(xs.map((x) => x - xs[0]!)) ** 2);
    expect(utilisationTrend.slopePerHour).toBeCloseTo(byTheOtherFormula, 6);
  });

  test('the outlook stays at the floor while utilisation is low, by the chain’s own rule', async () => {
    fill();
    const reply = await run(feesForecast, given().sources);
    expect(reply.rule).toBe('arc');
    expect(reply.outlook).toEqual(
      [60, 300, 900, 3600].map((horizonSeconds) => ({
        horizonSeconds,
        lowGwei: '20',
        expectedGwei: '20',
        highGwei: '20',
      })),
    );
  });

  test('a busy day raises the high end; EIP-1559 applies without an announcement; there is no outlook without a block time', async () => {
    const { db } = given();
    putBlocks(
      db,
      Array.from({ length: 600 }, (_, at) => ({
        number: 5000 + at,
        at: UNTIL - 600 + at,
        utilisation: at < 300 ? 0.2 : 0.95,
      })),
    );
    const reply = (await run(feesForecast, given().sources)) as {
      rule: string;
      outlook: { horizonSeconds: number; lowGwei: string; highGwei: string }[];
    };
    expect(reply.rule).toBe('eip1559');
    expect(reply.outlook.map(({ horizonSeconds }) => horizonSeconds)).toEqual([60, 300]);
    expect(reply.outlook[0]?.lowGwei).toBe('20');
    expect(Number(reply.outlook[0]?.highGwei)).toBeGreaterThan(100);
    given().status = { ...given().status, blockTimeSeconds: null };
    expect(await run(feesForecast, given().sources)).toMatchObject({ outlook: [], rule: null });
  });

  test('operations: medians of gas and percentiles of the fees paid', async () => {
    const { db, sources } = given();
    putBlocks(db, [{ number: 1000, at: UNTIL }]);
    createOperationCosts(db).record(
      [45_000, 51_000, 65_000].map((gasUsed) => ({
        kind: 'tokenTransfer' as const,
        at: UNTIL - HOUR,
        gasUsed,
        effectiveGasPrice: 25n * 10n ** 9n,
        baseFee: 20n * 10n ** 9n,
      })),
    );
    const { operations } = (await run(feesForecast, sources)) as { operations: unknown[] };
    const none = { gas: null, costUsdc: null, p50Usdc: null, p95Usdc: null, samples: 0 };
    expect(operations).toEqual([
      { type: 'nativeTransfer', ...none },
      // 51,000 at 20 gwei; 51,000 and 65,000 at 25 gwei, to three digits: 0.001275 and 0.001625.
      { type: 'tokenTransfer', gas: 51_000, costUsdc: '0.00102', p50Usdc: '0.00128', p95Usdc: '0.00163', samples: 3 },
      { type: 'contractCall', ...none },
      { type: 'deploy', ...none },
    ]);
  });
});

test('a slope needs two points at different times', () => {
  expect(slopeOf([])).toBeNull();
  expect(slopeOf([[1, 2]])).toBeNull();
  expect(
    slopeOf([
      [1, 2],
      [1, 3],
    ]),
  ).toBeNull();
  expect(
    slopeOf([
      [0, 1],
      [1, 3],
      [2, 5],
    ]),
  ).toBeCloseTo(2, 12);
});
