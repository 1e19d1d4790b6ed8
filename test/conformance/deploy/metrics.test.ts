import type { Metric } from 'prom-client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createAccount, type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { type RpcProxy, startRpcProxy } from '../../support/chain/rpc-proxy.ts';
import { readAlerts, readPanels } from '../../support/deploy/files.ts';
import { namesIn } from '../../support/deploy/promql.ts';
import { describePostgres } from '../../support/ledger/ledger-adapters.ts';
import { freshDatabase } from '../../support/postgres/postgres-run.ts';
import { type Service, startService } from '../../support/service/service.ts';

// Every name in the alerts and the dashboard against the registry of a service that publishes all that there is: it shares its ledger, offers channels,
// has two RPC providers, and buys from itself.

/** What Prometheus itself adds. */
const OF_PROMETHEUS = { up: ['job', 'instance'] };
const OF_TARGETS = ['job', 'instance'];

describePostgres('the metrics that docs/deploy names', () => {
  let network: EmbeddedNetwork;
  let proxies: RpcProxy[];
  let service: Service;
  let labels: Map<string, readonly string[]>;
  beforeAll(async () => {
    network = await startEmbeddedNetwork();
    proxies = [await startRpcProxy(network.rpcUrl), await startRpcProxy(network.rpcUrl)];
    const env = {
      LEDGER_URL: await freshDatabase(),
      RPC_URLS: proxies.map(({ url }) => url).join(),
      CHANNELS: 'on',
      CHANNELS_AUTHORIZER_KEY: createAccount().privateKey,
      SELFTEST_PRIVATE_KEY: network.selfTester.privateKey,
      RELAYER_DAILY_GAS_USDC: '5',
    };
    service = await startService(network, { env });
    labels = await labelsOf(service);
  });
  afterAll(async () => {
    await service?.stop();
    await Promise.all((proxies ?? []).map((proxy) => proxy.stop()));
    await network?.stop();
  });

  /** The labels of each series by its name, from the registry. */
  async function labelsOf({ deps }: Service): Promise<Map<string, readonly string[]>> {
    const found = new Map<string, readonly string[]>(Object.entries(OF_PROMETHEUS));
    for (const metric of deps.metrics.getMetricsAsArray() as unknown as Metric[]) {
      const { name, type } = await metric.get();
      // The HTTP latency is no metric of the library's, and names its label in its values alone.
      const { labelNames = ['route'] } = metric as { labelNames?: readonly string[] };
      const own = [...labelNames.filter((label) => label !== 'le'), ...OF_TARGETS];
      const isHistogram = String(type) === 'histogram';
      if (isHistogram) found.set(`${name}_bucket`, [...own, 'le']);
      for (const series of isHistogram ? [`${name}_sum`, `${name}_count`] : [name]) found.set(series, own);
    }
    return found;
  }

  /** What in an expression is no metric, or no label of the metrics there. `shown`: labels of a legend. */
  function faultsOf(expr: string, shown: readonly string[] = []): string[] {
    const { metrics, selected, grouped } = namesIn(expr);
    const of = (metric: string): readonly string[] => labels.get(metric) ?? [];
    const known = metrics.flatMap(of);
    return [
      ...metrics.filter((metric) => !labels.has(metric)),
      ...selected
        .filter(({ metric, label }) => !of(metric).includes(label))
        .map((one) => `${one.metric}{${one.label}}`),
      ...[...grouped, ...shown].filter((label) => !known.includes(label)).map((label) => `a label ${label}`),
      // A sum keeps what it is grouped by, and no other label.
      ...(/\bby\b/.test(expr)
        ? shown.filter((label) => !grouped.includes(label)).map((label) => `${label} is lost`)
        : []),
    ];
  }

  test('are published by the service with the labels that the alerts use', () => {
    const alerts = readAlerts();
    expect(alerts.length).toBeGreaterThan(23);
    expect(alerts.map(({ alert, expr }) => [alert, faultsOf(expr)]).filter(([, faults]) => faults?.length)).toEqual([]);
  });

  test('are published with the labels that the panels use', () => {
    const queries = readPanels().flatMap(({ title, targets = [] }) => targets.map((target) => ({ title, ...target })));
    expect(queries.length).toBeGreaterThan(25);
    const faults = queries.map(({ title, expr, legendFormat }) => {
      const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => String(label));
      return [title, faultsOf(expr, shown)] as const;
    });
    expect(faults.filter(([, found]) => found.length > 0)).toEqual([]);
  });

  describe('would be missed:', () => {
    test.each([
      ['a metric', 'time() - no_such_metric > 1', ['no_such_metric']],
      ['a metric beside a good one', 'up == 1 unless on (instance) no_such', ['no_such']],
      ['a label of a selector', 'sum(rate(payment_moves_total{way="usdc"}[5m]))', ['payment_moves_total{way}']],
      ['a label of a group', 'sum by (way) (payment_moves_total)', ['a label way']],
    ])('%s', (_what, expr, faults) => {
      expect(faultsOf(expr)).toEqual(faults);
    });

    test('a label of a legend', () => {
      expect(faultsOf('sum by (rail) (payment_moves_total)', ['state'])).toEqual(['state is lost']);
      expect(faultsOf('payment_moves_total', ['way'])).toEqual(['a label way']);
    });
  });
});
