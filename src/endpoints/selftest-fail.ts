import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { AppError } from '../errors.ts';

/** Fails after its payment was verified, so that a buyer can check that a failed call is never charged. */
export const selftestFail = defineEndpoint({
  path: '/selftest/fail',
  access: 'paid',
  // Not sold for bitcoin, because a Lightning payment cannot be returned.
  onlyOn: 'paid',
  priceUsd: '0.001',
  label: 'Self-test that fails',
  summary: 'Never succeeds: after the payment is verified it answers 500 and the payment is never settled.',
  params: z.object({}),
  result: z.strictObject({}).meta({ description: 'Never returned' }),
  example: { params: {}, result: {} },
  async run() {
    throw new AppError(
      500,
      'selftest_failed',
      'This route always fails, on purpose. The payment was not settled: you were not charged.',
      { isExpected: true },
    );
  },
});
