import { describe, expect, test } from 'vitest';
import { nextFeeState } from '../../../dev/miner.ts';
import { arcRule, eip1559Rule, forecastFees, smoothedUse, toGas } from '../../../src/chain/fees.ts';

const GWEI = 1_000_000_000n;
const LIMIT = 30_000_000n;
const FLOOR = 20n * GWEI;

describe("Arc's rule", () => {
  test('gives the check values of the node’s own test vectors', () => {
    const rule = arcRule({ gasLimit: LIMIT, floor: 1n, targetBps: 7500n });
    // The vectors give the smoothed use itself. A block with the same use does not change it.
    expect(rule({ baseFee: 160n * GWEI, smoothed: 0n }, 0n).baseFee).toBe(156_800_000_000n);
    expect(rule({ baseFee: 160n * GWEI, smoothed: LIMIT }, LIMIT).baseFee).toBe(161_066_666_666n);
  });

  test('raises the fee from 20 to about 57 gwei in sixty full blocks', () => {
    const rule = arcRule({ gasLimit: LIMIT, floor: FLOOR });
    let state = { baseFee: FLOOR, smoothed: 0n };
    for (let block = 0; block < 60; block++) state = rule(state, LIMIT);
    expect(Number(state.baseFee) / 1e9).toBeCloseTo(57.0, 1);
  });

  test('agrees with the embedded network’s own implementation over a thousand random blocks', () => {
    const rule = arcRule({ gasLimit: LIMIT, floor: FLOOR });
    let ours = { baseFee: 33n * GWEI, smoothed: 7_654_321n };
    let theirs = ours;
    for (let block = 0; block < 1000; block++) {
      const gasUsed = BigInt((block * 7_919_111 + (block % 97) * 251_001) % 30_000_001);
      ours = rule(ours, gasUsed);
      theirs = nextFeeState(theirs, gasUsed, LIMIT);
      expect(ours).toEqual(theirs);
    }
  });

  test('never goes below the floor or above the ceiling', () => {
    const rule = arcRule({ gasLimit: LIMIT, floor: FLOOR });
    expect(rule({ baseFee: FLOOR, smoothed: 0n }, 0n).baseFee).toBe(FLOOR);
    expect(rule({ baseFee: 20_000n * GWEI, smoothed: LIMIT }, LIMIT).baseFee).toBe(20_000n * GWEI);
  });
});

test("EIP-1559's rule gives the examples of the EIP, and changes the fee by at most an eighth", () => {
  const rule = eip1559Rule({ gasLimit: LIMIT, floor: 0n });
  const after = (gasUsed: bigint) => rule({ baseFee: 800n, smoothed: 0n }, gasUsed).baseFee;
  expect([after(LIMIT), after(0n), after(LIMIT / 2n), after(LIMIT / 2n + 1n)]).toEqual([900n, 700n, 800n, 801n]);
  expect(eip1559Rule({ gasLimit: LIMIT, floor: 790n })({ baseFee: 800n, smoothed: 0n }, 0n).baseFee).toBe(790n);
});

test('the smoothed use does not depend on its start, and a header’s quotient gives back the exact gas', () => {
  const tail = Array.from({ length: 64 }, (_, at) => (at % 7) / 10);
  const [low, high] = [smoothedUse([0, ...tail], LIMIT), smoothedUse([1, ...tail], LIMIT)];
  expect(Number(high - low)).toBeLessThan(30);
  expect(smoothedUse([], LIMIT)).toBe(0n);
  for (const gas of [1, 21_000, 7_654_321, 29_999_999]) expect(toGas(gas / Number(LIMIT), LIMIT)).toBe(BigInt(gas));
});

describe('the outlook', () => {
  const given = {
    state: { baseFee: 30n * GWEI, smoothed: 3_000_000n },
    rule: arcRule({ gasLimit: LIMIT, floor: FLOOR }),
    gasLimit: LIMIT,
    blockTimeSeconds: 0.5,
  };

  test('applies the rule to each horizon with the use of past periods of that length', () => {
    // Nineteen calm minutes and a full one: the 95th percentile of single minutes is calm. The maximum is not used.
    const minutes = [...new Array(19).fill(0.1), 1];
    const outlook = forecastFees({ ...given, minutes });
    expect(outlook.map(({ horizonSeconds }) => horizonSeconds)).toEqual([60, 300, 900]);
    const run = (utilisation: number, blocks: number) => {
      let state = given.state;
      for (let block = 1; block < blocks; block++) state = given.rule(state, toGas(utilisation, LIMIT));
      return state.baseFee;
    };
    expect(outlook[0]).toEqual({
      horizonSeconds: 60,
      low: run(0.1, 120),
      expected: run(0.1, 120),
      high: run(0.1, 120),
    });
    // Of six runs of fifteen minutes one holds the full minute: their 95th percentile.
    expect(outlook[2]).toMatchObject({ low: run(0.1, 1800), high: run((14 * 0.1 + 1) / 15, 1800) });
  });

  test('rises with use, is ordered, and is empty when no period is complete', () => {
    const minutes = Array.from({ length: 200 }, (_, at) => (at % 10) / 9);
    for (const { low, expected, high } of forecastFees({ ...given, minutes })) {
      expect(low <= expected && expected <= high).toBe(true);
    }
    expect(forecastFees({ ...given, minutes })[0]?.high).toBeGreaterThan(given.state.baseFee);
    expect(forecastFees({ ...given, minutes: [null, null] })).toEqual([]);
    expect(forecastFees({ ...given, minutes: [0.1, null, 0.1, 0.1, 0.1, 0.1] })).toHaveLength(1);
  });
});
