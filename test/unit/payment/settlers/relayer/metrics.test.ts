import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { createRelayerMetrics } from '../../../../../src/payment/settlers/relayer/metrics.ts';

const GWEI = 10n ** 9n;

/** Every sample, by its name with its labels. */
async function samples(registry: Registry): Promise<Map<string, number>> {
  const lines = (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  );
}

test('a batch counts once as a transaction, and once a payment in gas and cost', async () => {
  const registry = new Registry();
  const metrics = createRelayerMetrics(registry);
  const gasUsed = 800_000n;
  metrics.mined({ wei: gasUsed * 20n * GWEI, failedWei: 0n, gasUsed, gasPrice: 20n * GWEI, payments: 12, settled: 10 });
  const got = await samples(registry);
  expect(got.get('relayer_transactions_total')).toBe(1);
  expect(got.get('relayer_payments_total')).toBe(10);
  expect(got.get('relayer_cost_usdc_total')).toBeCloseTo(0.016);
  expect(got.get('relayer_batch_payments_sum')).toBe(12);
  expect(got.get('relayer_gas_per_payment_count')).toBe(10);
  expect(got.get('relayer_gas_per_payment_sum')).toBeCloseTo(800_000);
  expect(got.get('relayer_gas_per_payment_bucket{le="80000"}')).toBe(10);
  expect(got.get('relayer_cost_per_payment_usdc_sum')).toBeCloseTo(0.016);
});

test('one that settled nothing costs, and is no payment', async () => {
  const registry = new Registry();
  const cost = { wei: 10n ** 15n, failedWei: 10n ** 15n, gasUsed: 50_000n, gasPrice: 1n };
  createRelayerMetrics(registry).mined({ ...cost, payments: 1, settled: 0 });
  const got = await samples(registry);
  expect([got.get('relayer_cost_usdc_total'), got.get('relayer_payments_total')]).toEqual([0.001, 0]);
  expect(got.get('relayer_gas_per_payment_count')).toBe(0);
});

test('an operation is a transaction with a cost, and no batch of payments', async () => {
  const registry = new Registry();
  const cost = { wei: 10n ** 15n, failedWei: 0n, gasUsed: 50_000n, gasPrice: 1n };
  createRelayerMetrics(registry).mined({ ...cost, payments: 0, settled: 0 });
  const got = await samples(registry);
  expect([got.get('relayer_cost_usdc_total'), got.get('relayer_transactions_total')]).toEqual([0.001, 1]);
  expect([got.get('relayer_batch_payments_count'), got.get('relayer_gas_per_payment_count')]).toEqual([0, 0]);
});

test('the relayer’s balance and the day’s budget are reported in USDC, and no limit is reported without a budget', async () => {
  const [registry, unlimited] = [new Registry(), new Registry()];
  const metrics = createRelayerMetrics(registry);
  metrics.read({ balanceWei: 25n * 10n ** 17n, gasPriceWei: 20n * GWEI });
  let spent = 10n ** 17n;
  metrics.watchBudget({
    ...{ spentWei: () => spent, dailyWei: 10n ** 18n },
    ...{ failedWei: () => spent / 4n, dailyFailuresWei: 5n * 10n ** 17n },
  });
  spent *= 2n;
  const got = await samples(registry);
  expect([got.get('relayer_balance_usdc'), got.get('relayer_gas_price_gwei')]).toEqual([2.5, 20]);
  expect([got.get('relayer_gas_spent_today_usdc'), got.get('relayer_gas_budget_usdc')]).toEqual([0.2, 1]);
  expect([got.get('relayer_gas_failed_today_usdc'), got.get('relayer_gas_failed_budget_usdc')]).toEqual([0.05, 0.5]);
  createRelayerMetrics(unlimited).watchBudget({
    ...{ spentWei: () => 0n, dailyWei: null, failedWei: () => 0n, dailyFailuresWei: null },
  });
  const told = await samples(unlimited);
  expect([told.has('relayer_gas_budget_usdc'), told.has('relayer_gas_failed_budget_usdc')]).toEqual([false, false]);
  expect(told.get('relayer_gas_failed_today_usdc')).toBe(0);
});
