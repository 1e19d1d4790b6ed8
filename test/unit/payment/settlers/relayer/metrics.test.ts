import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { createRelayerMetrics } from '../../../../../src/payment/relayer/gas.ts';

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
  metrics.mined({ payments: 12 }, [
    { rail: 'a', wei: Number(gasUsed * 20n * GWEI), gasUsed: Number(gasUsed), settled: 10 },
  ]);
  const got = await samples(registry);
  expect(got.get('relayer_transactions_total')).toBe(1);
  expect(got.get('relayer_payments_total{rail="a"}')).toBe(10);
  expect(got.get('relayer_cost_usdc_total{rail="a"}')).toBeCloseTo(0.016);
  expect(got.get('relayer_batch_payments_sum')).toBe(12);
  expect(got.get('relayer_gas_per_payment_count')).toBe(10);
  expect(got.get('relayer_gas_per_payment_sum')).toBeCloseTo(800_000);
  expect(got.get('relayer_gas_per_payment_bucket{le="80000"}')).toBe(10);
  expect(got.get('relayer_cost_per_payment_usdc_sum{rail="a"}')).toBeCloseTo(0.016);
});

test('a transaction that settled nothing counts its cost, and no payment', async () => {
  const registry = new Registry();
  createRelayerMetrics(registry).mined({ payments: 1 }, [{ rail: 'a', wei: 1e15, gasUsed: 50_000, settled: 0 }]);
  const got = await samples(registry);
  expect([got.get('relayer_cost_usdc_total{rail="a"}'), got.get('relayer_payments_total{rail="a"}')]).toEqual([
    0.001, 0,
  ]);
  expect(got.get('relayer_gas_per_payment_count')).toBe(0);
});

test('an operation is a transaction with a cost, and no batch of payments', async () => {
  const registry = new Registry();
  createRelayerMetrics(registry).mined({ payments: 0 }, [{ rail: 'a', wei: 1e15, gasUsed: 50_000, settled: 0 }]);
  const got = await samples(registry);
  expect([got.get('relayer_cost_usdc_total{rail="a"}'), got.get('relayer_transactions_total')]).toEqual([0.001, 1]);
  expect([got.get('relayer_batch_payments_count'), got.get('relayer_gas_per_payment_count')]).toEqual([0, 0]);
});

test('a transaction that rails share costs each rail its part, and each payment its rail’s mean', async () => {
  const registry = new Registry();
  const metrics = createRelayerMetrics(registry);
  metrics.watchRail('quiet');
  const both = [
    { rail: 'a', wei: 2e15, gasUsed: 100_000, settled: 2 },
    { rail: 'b', wei: 4e15, gasUsed: 200_000, settled: 1 },
  ];
  metrics.mined({ payments: 3 }, both);
  const got = await samples(registry);
  expect(got.get('relayer_cost_per_payment_usdc_bucket{le="0.001",rail="a"}')).toBe(2);
  expect(got.get('relayer_cost_per_payment_usdc_sum{rail="b"}')).toBeCloseTo(0.004);
  expect(got.get('relayer_cost_usdc_total{rail="b"}')).toBeCloseTo(0.004);
  expect(got.get('relayer_cost_usdc_total{rail="quiet"}')).toBe(0);
  expect(got.get('relayer_batch_payments_count')).toBe(1);
});

test('the relayer’s balance and the day’s budget are reported in USDC, and no limit is reported without a budget', async () => {
  const [registry, unlimited] = [new Registry(), new Registry()];
  const metrics = createRelayerMetrics(registry);
  const relayer = `0x${'aa'.repeat(20)}` as const;
  metrics.read({ balanceWei: 25n * 10n ** 17n, gasPriceWei: 20n * GWEI, neededWei: 12n * 10n ** 16n, relayer });
  let spent = 10n ** 17n;
  metrics.watchBudget({
    spentWei: () => spent,
    dailyWei: () => 10n ** 18n,
    failedWei: () => spent / 4n,
    dailyFailuresWei: 5n * 10n ** 17n,
  });
  spent *= 2n;
  const got = await samples(registry);
  expect([got.get('relayer_balance_usdc'), got.get('relayer_gas_price_gwei')]).toEqual([2.5, 20]);
  expect([got.get('relayer_needed_usdc'), got.get(`relayer_info{address="${relayer}"}`)]).toEqual([0.12, 1]);
  expect([got.get('relayer_gas_spent_today_usdc'), got.get('relayer_gas_budget_usdc')]).toEqual([0.2, 1]);
  expect([got.get('relayer_gas_failed_today_usdc'), got.get('relayer_gas_failed_budget_usdc')]).toEqual([0.05, 0.5]);
  createRelayerMetrics(unlimited).watchBudget({
    spentWei: () => 0n,
    dailyWei: () => null,
    failedWei: () => 0n,
    dailyFailuresWei: null,
  });
  const answers = await samples(unlimited);
  expect([answers.has('relayer_gas_budget_usdc'), answers.has('relayer_gas_failed_budget_usdc')]).toEqual([
    false,
    false,
  ]);
  expect(answers.get('relayer_gas_failed_today_usdc')).toBe(0);
});

test('a rail is in the counters before its first transaction', async () => {
  const registry = new Registry();
  createRelayerMetrics(registry).watchRail('b');
  const got = await samples(registry);
  expect([got.get('relayer_payments_total{rail="b"}'), got.get('relayer_cost_usdc_total{rail="b"}')]).toEqual([0, 0]);
});

test('a figure is read at each scrape, and has no sample where there is none or it cannot be read', async () => {
  const registry = new Registry();
  const metrics = createRelayerMetrics(registry);
  let read = async (): Promise<number | null> => 7;
  metrics.publish('figure', 'of a test', () => read());
  expect((await samples(registry)).get('figure')).toBe(7);
  read = async () => 0;
  expect((await samples(registry)).get('figure')).toBe(0);
  for (const nothing of [async () => null, () => Promise.reject(new Error('the store is away'))]) {
    read = nothing;
    expect((await samples(registry)).has('figure')).toBe(false);
  }
  // An instance that leads again publishes it anew.
  metrics.publish('figure', 'of a test', async () => 9);
  expect((await samples(registry)).get('figure')).toBe(9);
});

test('the budget of an instance that leads again replaces the one before', async () => {
  const registry = new Registry();
  const metrics = createRelayerMetrics(registry);
  const budget = (wei: bigint, limit: bigint | null) => ({
    spentWei: () => wei,
    failedWei: () => wei / 2n,
    dailyWei: () => limit,
    dailyFailuresWei: limit,
  });
  metrics.watchBudget(budget(4n * 10n ** 18n, 8n * 10n ** 18n));
  const names = ['spent_today', 'budget', 'failed_today', 'failed_budget'].map((name) => `relayer_gas_${name}_usdc`);
  const shown = async () => {
    const got = await samples(registry);
    return names.map((name) => got.get(name));
  };
  expect(await shown()).toEqual([4, 8, 2, 8]);
  metrics.watchBudget(budget(10n ** 18n, null));
  expect(await shown()).toEqual([1, undefined, 0.5, undefined]);
});

test('what the relayer holds has no sample before it was read: where no relayer settles, 0 would be a false alarm', async () => {
  const registry = new Registry();
  createRelayerMetrics(registry);
  const got = await samples(registry);
  const read = ['relayer_balance_usdc', 'relayer_needed_usdc', 'relayer_gas_price_gwei'];
  expect(read.filter((name) => got.has(name))).toEqual([]);
});
