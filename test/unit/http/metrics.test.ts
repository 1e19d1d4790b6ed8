import { Counter } from 'prom-client';
import { expect, test } from 'vitest';
import { createMetrics } from '../../../src/http/metrics.ts';

test('two registries share Node’s default metrics', async () => {
  const [first, second] = [createMetrics(), createMetrics()];
  for (const name of ['nodejs_eventloop_lag_seconds', 'nodejs_gc_duration_seconds']) {
    expect(first.getSingleMetric(name)).toBeDefined();
    expect(second.getSingleMetric(name)).toBe(first.getSingleMetric(name));
  }
  expect(await second.metrics()).toMatch(/^process_cpu_seconds_total [\d.]+$/m);
});

test('a service’s own metric is in its registry only', () => {
  const [first, second] = [createMetrics(), createMetrics()];
  const counter = (registers: [typeof first]) => new Counter({ name: 'sales_total', help: 'Sales', registers });
  const sales = [counter([first]), counter([second])];
  expect([first, second].map((registry) => registry.getSingleMetric('sales_total'))).toEqual(sales);
  expect(sales[0]).not.toBe(sales[1]);
});
