import { expect, test } from 'vitest';
import { readSources } from '../../support/sources.ts';

const sources = readSources('src/payment/**/*.ts');
const filesWith = (pattern: RegExp) => sources.filter(({ text }) => pattern.test(text)).map(({ path }) => path);

test('an endpoint runs in one place, within its time and under its schema, so that no rail runs one past its limits', () => {
  expect(filesWith(/endpoint\.run\(/)).toEqual(['src/payment/checkout.ts']);
});

test('one place refuses a payer with too many open payments, because deposits know that refusal by its code', () => {
  expect(filesWith(/payer_open_payments/)).toEqual(['src/payment/sale.ts']);
  expect(filesWith(/\bOPEN_PAYMENTS\b/).sort()).toEqual(['src/payment/channels/deposit.ts', 'src/payment/sale.ts']);
});
