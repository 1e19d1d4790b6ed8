import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGuarded } from '../../../dev/child.ts';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { type Postgres, startPostgres } from '../../../scripts/lib/ledger/postgres.ts';
import { type RpcProxy, startRpcProxy } from '../../support/chain/rpc-proxy.ts';
import { readAlerts, readPanels } from '../../support/deploy/files.ts';
import { programPath, programsMissing } from '../../support/deploy/programs.ts';
import { type Prometheus, startPrometheus } from '../../support/deploy/prometheus.ts';
import { diskFolder } from '../../support/disk/disk-runs.ts';
import { type DiskControl, diskMissing, faultyDiskEnv, openDiskControl } from '../../support/disk/faulty-disk.ts';
import { readText } from '../../support/documents.ts';
import { describePostgres } from '../../support/ledger/ledger-adapters.ts';
import { payFor, presentProof } from '../../support/lightning/lightning-buyer.ts';
import { type Instances, startInstances, untilOneLeads } from '../../support/service/instances.ts';
import { ownPort } from '../../support/service/own-port.ts';
import { createProcess } from '../../support/service/process.ts';
import { call } from '../../support/service/service.ts';
import { presentUntilServed, until } from '../../support/service/workers.ts';
import { newBuyer, present } from '../../support/usdc/buyer.ts';

// Debian's Prometheus reads real services under traffic, with the alerts and the queries of docs/deploy: in quiet traffic every panel has data and no
// alert's expression is true, and each fault that is brought about makes those true that speak of it. How long an alert then waits is in alerts.test.ts.

const missing = process.env.SLOW
  ? (programsMissing('prometheus', 'haproxy') ?? diskMissing)
  : 'SLOW=1 runs it, for some minutes';
const skipped = missing === null ? '' : ` (skipped, ${missing})`;

const TOKEN = 'a-token-of-this-test';
const PATH = '/v1/paid/chain/wallet';
const LIGHTNING_PATH = '/v1/lightning/chain/wallet';
/** A lone settlement costs 0.0023 USDC of gas, and the default price is 0.002: an alert says so. */
const PRICES = { PRICES: 'chain/wallet=0.02' };
/** A fault may need a minute until it shows, on a machine that is as busy as it may be. */
const PATIENT = { timeout: 280_000, interval: 500 };
/** Readings, a second apart, of quiet traffic. */
const QUIET_READINGS = 60;

const alerts = readAlerts();
const exprOf = (name: string): string => {
  const expr = alerts.find(({ alert }) => alert === name)?.expr;
  if (expr === undefined) throw new Error(`${name} is no alert`);
  return expr;
};

/** Calls until it is stopped, one after the other. A call that fails is a buyer's bad luck: faults are brought about meanwhile. */
function startTraffic(calls: () => Promise<unknown>) {
  let isOn = true;
  let failed = 0;
  const running = (async () => {
    while (isOn) {
      await calls().catch(() => {
        failed += 1;
      });
      await delay(100);
    }
  })();
  return {
    failed: () => failed,
    stop: async (): Promise<void> => {
      isOn = false;
      await running;
    },
  };
}

async function untilTrue(prometheus: Prometheus, ...names: readonly string[]): Promise<void> {
  for (const name of names)
    await expect
      .poll(async () => (await prometheus.query(exprOf(name))).length, { ...PATIENT, message: `${name} is true` })
      .toBeGreaterThan(0);
}

async function untilFalse(prometheus: Prometheus, ...names: readonly string[]): Promise<void> {
  for (const name of names)
    await expect
      .poll(() => prometheus.query(exprOf(name)), { ...PATIENT, message: `${name} is false again` })
      .toEqual([]);
}

async function quietAlerts(prometheus: Prometheus, fromMs: number): Promise<string[]> {
  const now = Date.now();
  const wrong = await Promise.all(
    alerts.map(async ({ alert, expr }) => ((await prometheus.wasTrue(expr, fromMs, now)) ? alert : '')),
  );
  return wrong.filter((name) => name !== '');
}

/** Resolves when every target has been read so many times more. */
async function untilRead(prometheus: Prometheus, targets: number, times: number): Promise<void> {
  const count = async () => {
    const series = await prometheus.query('count_over_time(up[1h])');
    return series.length < targets ? 0 : Math.min(...series.map(({ value }) => value));
  };
  const before = await count();
  await expect.poll(count, PATIENT).toBeGreaterThanOrEqual(before + times);
}

describe.skipIf(missing !== null)(`one service under Prometheus${skipped}`, { shuffle: false }, () => {
  let network: EmbeddedNetwork;
  let providers: RpcProxy[];
  let folder: string;
  let disk: DiskControl;
  let service: Awaited<ReturnType<typeof createProcess>>;
  let prometheus: Prometheus;
  let traffic: ReturnType<typeof startTraffic>;
  let buyer: Awaited<ReturnType<typeof newBuyer>>;

  beforeAll(async () => {
    network = await startEmbeddedNetwork({ lightning: true });
    providers = [await startRpcProxy(network.rpcUrl), await startRpcProxy(network.rpcUrl)];
    folder = diskFolder();
    const data = join(folder, 'data');
    mkdirSync(data);
    disk = openDiskControl(join(folder, 'control'));
    service = await createProcess(network, data, {
      ...(await faultyDiskEnv(data, join(folder, 'control'))),
      ...PRICES,
      RPC_URLS: providers.map(({ url }) => url).join(),
      RPC_TIMEOUT_MS: '2000',
      WS_URLS: '',
      METRICS_TOKEN: TOKEN,
      RELAYER_DAILY_GAS_USDC: '100',
      REPLY_STORE_MB: '1',
      SELFTEST_PRIVATE_KEY: network.selfTester.privateKey,
      SELFTEST_PATH: `${PATH}?address=${network.seller}`,
    });
    await service.start();
    buyer = await newBuyer(network, 1_000_000_000n);
    let turn = 0;
    traffic = startTraffic(async () => {
      turn += 1;
      const { origin } = service;
      const path = `${PATH}?address=${buyer.address}`;
      await call(origin, '/v1/fees/estimate');
      await present(origin, path, await buyer.sign(origin, path));
      if (turn % 5 !== 1) return;
      // A buyer whose payment cannot be read, one that asks for nothing there is, and one that pays in sats.
      await present(origin, path, { header: 'unreadable' });
      await call(origin, '/v1/nothing');
      const there = `${LIGHTNING_PATH}?address=${buyer.address}`;
      const pay = (invoice: string) => network.lightning?.pay(invoice) ?? Promise.reject(new Error('no node'));
      await presentProof(origin, there, await payFor(pay, origin, there));
    });
    prometheus = await startPrometheus([service.origin], TOKEN);
  });
  afterAll(async () => {
    await traffic?.stop();
    await prometheus?.stop();
    await service?.kill();
    disk?.close();
    await Promise.all((providers ?? []).map((proxy) => proxy.stop()));
    await network?.stop();
    if (folder) rmSync(folder, { recursive: true, force: true });
  });

  test('Prometheus has loaded every alert, and reads the metrics with the token', async () => {
    expect((await prometheus.rules()).sort()).toEqual(alerts.map(({ alert }) => alert).sort());
    await untilRead(prometheus, 1, 3);
    expect(await prometheus.query('up')).toEqual([{ labels: expect.objectContaining({ job: 'percall' }), value: 1 }]);
    expect((await call(service.origin, '/metrics')).status).toBe(404);
  });

  test('in quiet traffic no alert’s expression is true', async () => {
    await expect.poll(() => prometheus.query('payments_open')).not.toEqual([]);
    const from = Date.now();
    await untilRead(prometheus, 1, QUIET_READINGS);
    expect(await quietAlerts(prometheus, from)).toEqual([]);
    expect(traffic.failed()).toBe(0);
  });

  test('every query of every panel finds data', async () => {
    const queries = readPanels().flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })));
    expect(queries.length).toBeGreaterThan(25);
    const without: string[] = [];
    for (const { title, expr } of queries) {
      const series = await prometheus.query(expr.replaceAll('$__rate_interval', '30s'));
      const found = series.filter(({ value }) => Number.isFinite(value));
      if (found.length === 0) without.push(`${title}: ${expr}`);
    }
    expect(without).toEqual([]);
  });

  test('the panels show what the traffic does', async () => {
    const labelsOf = async (title: string, label: string) => {
      const [{ expr = '' } = {}] = readPanels().find((panel) => panel.title === title)?.targets ?? [];
      const series = await prometheus.query(expr.replaceAll('$__rate_interval', '1m'));
      return series
        .filter(({ value }) => value > 0)
        .map(({ labels }) => labels[label])
        .sort();
    };
    expect(await labelsOf('Paid answers a minute, by rail', 'rail')).toEqual(['lightning', 'usdc-exact']);
    expect(await labelsOf('Paid answers a minute, by route', 'route')).toEqual([LIGHTNING_PATH, PATH]);
    expect(await labelsOf('Payments that got no answer, a minute, by reason', 'reason')).toEqual(['invalid_payload']);
    expect(await labelsOf('Refused requests a minute, by status', 'status')).toEqual(['404']);
    expect(await labelsOf('Gas of a call in USDC, by rail', 'rail')).toEqual(['usdc-exact']);
    const waits = 'From the payment to the answer, by rail: all but a hundredth (p99)';
    expect(await labelsOf(waits, 'rail')).toEqual(['lightning', 'usdc-exact']);
    expect((await labelsOf('Sources whose newest question was answered', 'source')).length).toBeGreaterThan(0);
  });

  test('a provider is away: ProviderAway, NoTwoProvidersAgree', async () => {
    providers[0]?.fault({ '*': 'refuse' });
    await untilTrue(prometheus, 'ProviderAway', 'NoTwoProvidersAgree');
    expect(await prometheus.query(exprOf('HeadStandsStill'))).toEqual([]);
    providers[0]?.fault({});
    await untilFalse(prometheus, 'ProviderAway', 'NoTwoProvidersAgree');
  });

  test('no provider answers: HeadStandsStill', async () => {
    for (const provider of providers) provider.fault({ '*': 'refuse' });
    await untilTrue(prometheus, 'HeadStandsStill');
    for (const provider of providers) provider.fault({});
    await untilFalse(prometheus, 'HeadStandsStill', 'ProviderAway', 'NoTwoProvidersAgree');
  });

  test('the relayer is without gas: RelayerShortOfGas', async () => {
    const set = (wei: bigint) => network.rpc('anvil_setBalance', [network.relayer.address, `0x${wei.toString(16)}`]);
    await set(5n * 10n ** 17n);
    await untilTrue(prometheus, 'RelayerShortOfGas');
    await set(1000n * 10n ** 18n);
    await untilFalse(prometheus, 'RelayerShortOfGas');
  });

  test('the collector is stopped by a full disk: CollectorBehind', async () => {
    disk.arm({ on: ['write'], error: 'ENOSPC', part: 'chain.db' });
    await untilTrue(prometheus, 'CollectorBehind');
    expect(await prometheus.query(exprOf('LedgerNotWritable'))).toEqual([]);
    disk.heal();
    await untilFalse(prometheus, 'CollectorBehind');
  });

  test('the ledger’s disk is full: LedgerNotWritable, Errors', async () => {
    disk.arm({ on: ['growing'], error: 'ENOSPC', part: 'ledger.db' });
    await untilTrue(prometheus, 'LedgerNotWritable', 'Errors');
    expect(await prometheus.query(exprOf('LedgerUnreadable'))).toEqual([]);
    disk.heal();
    await untilFalse(prometheus, 'LedgerNotWritable');
  });

  test('the reply store is nearly full: RepliesNearlyFull', async () => {
    const buy = async () => {
      const path = `${PATH}?address=${buyer.address}`;
      await presentUntilServed(service.origin, path, await buyer.sign(service.origin, path));
    };
    for (;;) {
      await Promise.all(Array.from({ length: 24 }, buy));
      const [share] = await prometheus.query('payment_reply_bytes / payment_reply_bytes_limit');
      if ((share?.value ?? 0) > 0.81) break;
    }
    await untilTrue(prometheus, 'RepliesNearlyFull');
  });

  test('the service is killed: InstanceDown', async () => {
    await traffic.stop();
    await service.kill();
    await untilTrue(prometheus, 'InstanceDown');
  });
});

describePostgres('the cluster', () => {
  describe.skipIf(missing !== null)(`behind HAProxy, under Prometheus${skipped}`, { shuffle: false }, () => {
    let network: EmbeddedNetwork;
    let postgres: Postgres;
    let folder: string;
    let haproxy: Awaited<ReturnType<typeof startGuarded>>;
    let origin: string;
    let service: Instances;
    let prometheus: Prometheus;
    let traffic: ReturnType<typeof startTraffic>;
    let buyer: Awaited<ReturnType<typeof newBuyer>>;
    const path = () => `${PATH}?address=${buyer.address}`;

    beforeAll(async () => {
      [network, postgres] = await Promise.all([startEmbeddedNetwork(), startPostgres()]);
      await postgres.createDatabase('ledger');
      origin = `http://127.0.0.1:${await ownPort()}`;
      const env = { ...PRICES, METRICS_TOKEN: TOKEN, TRUSTED_PROXIES: '127.0.0.1', PUBLIC_ORIGIN: origin };
      service = await startInstances(network, postgres.url('ledger'), 2, env);
      folder = mkdtempSync(join(tmpdir(), 'percall-haproxy-'));
      writeFileSync(join(folder, 'haproxy.cfg'), configFor(service.origins));
      haproxy = await startGuarded(programPath('haproxy'), ['-db', '-f', join(folder, 'haproxy.cfg')]);
      await until('HAProxy sends to an instance', async () => {
        if (haproxy.ended() !== null) throw new Error(`HAProxy ended: ${haproxy.tail()}`);
        return (await call(origin, '/readyz').catch(() => null))?.status === 200;
      });
      buyer = await newBuyer(network, 1_000_000_000n);
      traffic = startTraffic(async () => present(origin, path(), await buyer.sign(origin, path())));
      prometheus = await startPrometheus(service.origins, TOKEN);
      await untilOneLeads(service);
    });
    afterAll(async () => {
      await traffic?.stop();
      await prometheus?.stop();
      await haproxy?.stop();
      await service?.stop();
      await postgres?.stop();
      await network?.stop();
      if (folder) rmSync(folder, { recursive: true, force: true });
    });

    /** The file of docs/deploy with the addresses of this test. */
    function configFor(instances: readonly string[]): string {
      const [a, b] = instances.map((instance) => new URL(instance).host);
      const config = readText('docs/deploy/haproxy.cfg')
        .replace('bind :80\n', `bind ${new URL(origin).host}\n`)
        .replace('server a a:4021', `server a ${a}`)
        .replace('server b b:4021', `server b ${b}`);
      expect(config).not.toMatch(/4021|:80\b/);
      return config;
    }

    test('in quiet traffic both instances are read, one leads, and no alert’s expression is true', async () => {
      await expect.poll(async () => (await prometheus.query('payments_open')).length).toBe(6);
      const from = Date.now();
      await untilRead(prometheus, 2, QUIET_READINGS);
      expect((await prometheus.query('instance_leads')).map(({ value }) => value).sort()).toEqual([0, 1]);
      expect(await quietAlerts(prometheus, from)).toEqual([]);
    });

    test('the leader is gone: NobodyLeads until the other leads, InstanceDown until it is back; a buyer gets the answer', async () => {
      const leader = await untilOneLeads(service);
      const from = Date.now();
      const payment = await buyer.sign(origin, path());
      await service.instances[leader]?.kill();
      const served = presentUntilServed(origin, path(), payment);
      await untilTrue(prometheus, 'InstanceDown');
      expect((await served).status).toBe(200);
      await untilFalse(prometheus, 'NobodyLeads');
      expect(await prometheus.wasTrue(exprOf('NobodyLeads'), from, Date.now())).toBe(true);
      await service.instances[leader]?.start();
      await untilFalse(prometheus, 'InstanceDown', 'NobodyLeads');
    });

    test('the database is gone: LedgerUnreadable, LedgerNotWritable', async () => {
      await postgres.kill();
      await untilTrue(prometheus, 'LedgerUnreadable', 'LedgerNotWritable');
      await postgres.restart();
      await untilFalse(prometheus, 'LedgerUnreadable', 'LedgerNotWritable', 'NobodyLeads');
    });
  });
});
