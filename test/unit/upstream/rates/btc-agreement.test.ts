import { describe, expect, test } from 'vitest';
import { agreedRate } from '../../../../src/upstream/rates/bitcoin.ts';
import { seed, seededRandom } from '../../../support/random.ts';

describe('agreedRate', () => {
  test.each([
    // The recorded set of 2026-10-05 (the spot price in Coinbase's place).
    [['85866.185', '85861.20000', '85864.00'], '85864'],
    [['3', '1', '2'], '2'],
    // By value, not as text.
    [['9999.5', '10000', '100000'], '10000'],
    [['100.10', '100.1', '99'], '100.1'],
    // An outlier on either side decides nothing.
    [['85000', '85100', '1000000'], '85100'],
    [['85000', '85100', '100'], '85000'],
    // Two: the mean, exact.
    [['85000', '85001'], '85000.5'],
    [['85000.01', '85000.02'], '85000.015'],
    [['85000.00', '85000'], '85000'],
    // At the limit and a hair past it.
    [['100', '102'], '101'],
    [['102', '100'], '101'],
    [['100', '102.00000001'], null],
    [['102.00000001', '100'], null],
    [['85000'], null],
    [[], null],
  ])('%j: %s', (rates, rate) => {
    expect(agreedRate(rates)).toBe(rate);
  });

  test(`the order of three does not matter, and one rate alone cannot move the result beyond the other two (seed ${seed})`, () => {
    const random = seededRandom('agreement');
    for (let run = 0; run < 500; run++) {
      const rates = [0, 1, 2].map(() => (50_000 + Math.floor(random() * 100_000)).toString());
      const sorted = rates.map(Number).sort((a, b) => a - b);
      const [a = '', b = '', c = ''] = rates;
      for (const order of [
        [a, b, c],
        [b, c, a],
        [c, b, a],
        [b, a, c],
      ])
        expect(agreedRate(order)).toBe(`${sorted[1]}`);
    }
  });
});
