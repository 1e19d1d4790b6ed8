import { Counter, type Registry } from 'prom-client';

/**
 * Counts how the self-test's runs ended, for an alert: `selftest_runs_total{ok}`. Both counts begin at 0, because
 * Prometheus sees no increase in a sample that has none before it.
 */
export function countSelfTests(registry: Registry): (isOk: boolean) => void {
  const runs = new Counter({
    name: 'selftest_runs_total',
    help: 'Runs of the self-test, by whether all was well',
    labelNames: ['ok'],
    registers: [registry],
  });
  for (const ok of ['true', 'false']) runs.inc({ ok }, 0);
  return (isOk) => runs.inc({ ok: String(isOk) });
}
