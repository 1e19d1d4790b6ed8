import { describe, expect, test } from 'vitest';
import { priceMsat } from '../../../../../src/payment/lightning/offers.ts';
import { seed, seededRandom } from '../../../../support/random.ts';

const RUNS = 2000;

describe('the price in millisatoshis', () => {
  test.each([
    // 0.001 USD at 85,864 USD: 1.1646… sat.
    [1000n, '85864.00', 2000n],
    [5000n, '85864', 6000n],
    [500n, '85864', 1000n],
    [4000n, '63212.97', 7000n],
    // Exactly whole sats are not rounded up by another one; one part in 10^20 above is.
    [1000n, '100000', 1000n],
    [2000n, '100000', 2000n],
    [2000n, '99999.999999999999999', 3000n],
    [2000n, '100000.000000000000001', 2000n],
    // A whole bitcoin.
    [100_000_000_000n, '100000', 100_000_000_000n],
    // A hundredth of a sat is still a sat, and so is nothing.
    [1n, '100000000', 1000n],
    [0n, '85864', 1000n],
  ])('%i millionths at %s are %i millisatoshis', (usdUnits, btcUsd, msat) => {
    expect(priceMsat(usdUnits, btcUsd)).toBe(msat);
  });

  test.each(['0', '0.00', '', '-1', '-85864', '1e5', 'NaN', 'Infinity', '85,864', ' 85864', '.5', '0x10', '85864.'])(
    'no price is made from the rate %o',
    (btcUsd) => {
      expect(() => priceMsat(1000n, btcUsd)).toThrow(RangeError);
    },
  );

  test('nor one from a negative amount', () => {
    expect(() => priceMsat(-1n, '85864')).toThrow(RangeError);
  });
});

describe(`properties (seed ${seed})`, () => {
  const random = seededRandom('quote');
  const whole = (below: number) => BigInt(Math.floor(random() * below));
  /** A rate of 100 to 10,000,000 with up to eight decimals, and the same as a fraction. */
  const someRate = () => {
    const scale = Math.floor(random() * 9);
    const digits = (100n + whole(10 ** (2 + Math.floor(random() * 6)))) * 10n ** BigInt(scale) + whole(10 ** scale);
    const text = digits.toString();
    const rate = scale === 0 ? text : `${text.slice(0, -scale)}.${text.slice(-scale)}`;
    return { rate, digits, one: 10n ** BigInt(scale) };
  };
  const someUnits = () => 1n + whole(10 ** (1 + Math.floor(random() * 9)));

  test('never below the exact price, and less than a sat above it unless it is the least', () => {
    let least = 0;
    for (let run = 0; run < RUNS; run++) {
      const [{ rate, digits, one }, units] = [someRate(), someUnits()];
      const sats = priceMsat(units, rate) / 1000n;
      // sats / 10^8 × digits / one against units / 10^6, both sides whole.
      const paid = sats * digits;
      const exact = units * 100n * one;
      expect(priceMsat(units, rate) % 1000n).toBe(0n);
      expect(paid >= exact, `${units} at ${rate}`).toBe(true);
      expect(sats === 1n || paid - digits < exact, `${units} at ${rate}`).toBe(true);
      if (sats === 1n) least += 1;
    }
    // The rule above the least price was tried too.
    expect(least).toBeLessThan(RUNS / 2);
  });

  test('a higher price never costs less, a higher rate never more', () => {
    for (let run = 0; run < RUNS; run++) {
      const [one, other, units, more] = [someRate(), someRate(), someUnits(), whole(10_000)];
      const [low, high] = one.digits * other.one <= other.digits * one.one ? [one, other] : [other, one];
      expect(priceMsat(units + more, one.rate) >= priceMsat(units, one.rate)).toBe(true);
      expect(priceMsat(units, high.rate) <= priceMsat(units, low.rate), `${units} at ${low.rate}, ${high.rate}`).toBe(
        true,
      );
    }
  });
});
