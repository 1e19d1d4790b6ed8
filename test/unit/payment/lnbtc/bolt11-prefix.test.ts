import { expect, test } from 'vitest';
import { readPrefix } from '../../../../src/payment/lightning/bolt11.ts';

const nines = (count: number) => '9'.repeat(count);

test('an amount is read as far as there could be so much bitcoin, and a good way beyond', () => {
  expect(readPrefix('lnbc21000000')).toEqual({ currency: 'bc', amountMsat: 21_000_000n * 10n ** 11n });
  expect(readPrefix(`lntb${nines(30)}n`)).toEqual({ currency: 'tb', amountMsat: BigInt(nines(30)) * 100n });
});

test.each(['', 'm', 'u', 'n', 'p'])('one that no database could hold is none (%s)', (multiplier) => {
  expect(readPrefix(`lnbc${nines(30)}0${multiplier}`)).toBeNull();
  expect(readPrefix(`lnbc${nines(70)}0${multiplier}`)).toBeNull();
});
