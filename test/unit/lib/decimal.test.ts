import { describe, expect, test } from 'vitest';
import { divide, formatDecimal, multiply, parseDecimal } from '../../../src/lib/units.ts';
import { seed, seededRandom } from '../../support/random.ts';

const decimal = (text: string) => parseDecimal(text)!;
const quotient = (a: string, b: string, decimals: number, significant: number) =>
  formatDecimal(divide(decimal(a), decimal(b), { decimals, significant }));

describe('parseDecimal and formatDecimal', () => {
  test.each([
    ['0', '0'],
    ['0.0', '0'],
    ['007.50', '7.5'],
    ['0.000001', '0.000001'],
    ['100', '100'],
    ['123456789012345678.12345678', '123456789012345678.12345678'],
  ])('%s is %s', (text, plain) => {
    expect(formatDecimal(decimal(text))).toBe(plain);
  });

  test.each(['', '.5', '5.', '-1', '+1', '1e3', '1,5', ' 1', '1 ', '0x10', '１', 'NaN'])('%o is none', (text) => {
    expect(parseDecimal(text)).toBeNull();
  });
});

describe('divide', () => {
  test.each([
    ['1', '3', 4, 1, '0.3333'],
    ['2', '3', 4, 1, '0.6667'],
    ['1', '8', 2, 1, '0.13'],
    ['1', '3', 0, 10, '0.3333333333'],
    ['186.43', '1.1711', 0, 10, '159.1922124'],
    ['1', '20082.05', 0, 6, '0.0000497957'],
    ['9999995', '10000000', 0, 6, '1'],
    ['0', '7', 4, 6, '0'],
    ['123456789012', '1', 0, 6, '123456789012'],
  ])('%s / %s to %i places and %i digits is %s', (a, b, decimals, significant, expected) => {
    expect(quotient(a, b, decimals, significant)).toBe(expected);
  });

  test('by zero throws', () => {
    expect(() => quotient('1', '0.00', 4, 6)).toThrow(RangeError);
  });

  test(`is within half a unit of its last place, whatever the numbers (SEED=${seed})`, () => {
    const random = seededRandom('decimal');
    const digits = () => Math.floor(random() * 10 ** Math.floor(random() * 12));
    const any = () => `${digits()}.${digits()}`;
    for (let round = 0; round < 500; round++) {
      const [a, b] = [decimal(any()), decimal(`1${any()}`)];
      const q = divide(a, b, { decimals: 2, significant: 6 });
      // |a - q·b| <= b / 2 in units of q's last place, all on one scale.
      const error = multiply(q, b).digits * 10n ** BigInt(a.scale) - a.digits * 10n ** BigInt(q.scale + b.scale);
      const bound = b.digits * 10n ** BigInt(a.scale);
      expect((error < 0n ? -error : error) * 2n <= bound).toBe(true);
      expect(q.digits.toString().length >= 6 || q.scale >= 2).toBe(true);
    }
  });
});
