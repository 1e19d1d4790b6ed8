import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { countSelfTests } from '../../../src/selftest/self-test.ts';

// `increase(...) > 0` misses the first event of a counter that begins at 1.
test('runs of the self-test are exported as 0 from the start, the failed ones too', async () => {
  const registry = new Registry();
  const count = countSelfTests(registry);
  const samples = async () => (await registry.metrics()).match(/^selftest_runs_total\{.*$/gm);
  expect(await samples()).toEqual(['selftest_runs_total{ok="true"} 0', 'selftest_runs_total{ok="false"} 0']);
  count(false);
  expect(await samples()).toEqual(['selftest_runs_total{ok="true"} 0', 'selftest_runs_total{ok="false"} 1']);
});
