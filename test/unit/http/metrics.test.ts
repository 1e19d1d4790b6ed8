import { Counter } from 'prom-client';
import { expect, test } from 'vitest';
import { createMetrics } from '../../../src/http/metrics.ts';

test('sets of parts share Node’s figures of the process, whose timer and observer nothing stops', async () => {
  const [one, other] = [createMetrics(), createMetrics()];
  for (const name of ['nodejs_eventloop_lag_seconds', 'nodejs_gc_duration_seconds']) {
    expect(one.getSingleMetric(name)).toBeDefined();
    expect(other.getSingleMetric(name)).toBe(one.getSingleMetric(name));
  }
  expect(await other.metrics()).toMatch(/^process_cpu_seconds_total [\d.]+$/m);
});

test('a metric of one set is not in another', () => {
  const [one, other] = [createMetrics(), createMetrics()];
  const counter = (registers: [typeof one]) => new Counter({ name: 'sales_total', help: 'Sales', registers });
  const sales = [counter([one]), counter([other])];
  expect([one, other].map((registry) => registry.getSingleMetric('sales_total'))).toEqual(sales);
  expect(sales[0]).not.toBe(sales[1]);
});
