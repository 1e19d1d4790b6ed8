import { expect, test } from 'vitest';
import { MIN_BASE_FEE, nextFeeState } from '../../../dev/miner.ts';
import { createRandom } from '../../../dev/traffic.ts';

const GWEI = 1_000_000_000n;
const LIMIT = 30_000_000n;

test('gives the values of the vectors published with the rule', () => {
  const rule = { targetBps: 7_500n, min: 1n };
  const from = (smoothed: bigint) => ({ baseFee: 160n * GWEI, smoothed });
  expect(nextFeeState(from(0n), 0n, LIMIT, rule).baseFee).toBe(156_800_000_000n);
  expect(nextFeeState(from(LIMIT), LIMIT, LIMIT, rule).baseFee).toBe(161_066_666_666n);
});

test('stays at its lowest value on a quiet chain and reaches about 57 gwei after 60 full blocks', () => {
  let state = { baseFee: MIN_BASE_FEE, smoothed: 0n };
  for (let block = 0; block < 100; block++) state = nextFeeState(state, 500_000n, LIMIT);
  expect(state.baseFee).toBe(MIN_BASE_FEE);
  state = { baseFee: MIN_BASE_FEE, smoothed: 0n };
  for (let block = 0; block < 60; block++) state = nextFeeState(state, LIMIT, LIMIT);
  expect(Number(state.baseFee) / 1e9).toBeCloseTo(57, 0);
});

test('the same seed gives the same numbers, another seed others', () => {
  const draw = (seed: number) => {
    const random = createRandom(seed);
    return Array.from({ length: 20 }, () => random.below(1000));
  };
  expect(draw(7)).toEqual(draw(7));
  expect(draw(7)).not.toEqual(draw(8));
  expect(draw(7).every((value) => Number.isInteger(value) && value >= 0 && value < 1000)).toBe(true);
  expect(() => createRandom(1).pick([])).toThrow('nothing to pick from');
});
