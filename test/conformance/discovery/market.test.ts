import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { entriesOn, pathOn } from '../../../src/catalogue/paths.ts';
import { createMarket } from '../../../src/discovery/market.ts';
import { createCaller } from '../../../src/discovery/market-probe.ts';
import { createMarketSchedule } from '../../../src/discovery/market-schedule.ts';
import { openMemoryLedger, storesOf } from '../../support/ledger/fresh-ledger.ts';
import { createManualClock } from '../../support/manual-clock.ts';
import { countRunningTime } from '../../support/running-time.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { PATIENT_MS } from '../../support/upstream/patience.ts';

// A market on another host, with this service among its sellers. Our routes must be listed with what the catalogue says about them.

const SELLER = 'http://percall.example';
const LIMITS = { probeIntervalMs: 3_600_000, submitsPerHour: 0, maxListings: 100, maxPerHost: 100 };

countRunningTime();

let network: EmbeddedNetwork;
let service: Service;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  service = await startService(network);
});
afterAll(async () => {
  await service?.stop();
  await network?.stop();
});

/** A market for which this service is a third party. */
function openMarket(caip2: string) {
  const testHosts = new Map([['percall.example', { address: '127.0.0.1', port: service.config.port }]]);
  const db = openMemoryLedger();
  const store = storesOf(db).market;
  const caller = createCaller({
    dial: { resolve: async () => [], testHosts },
    userAgent: 'a-market/1',
    timeoutMs: PATIENT_MS,
    payable: { network: caip2, usdc: network.usdc },
    publicOrigin: 'https://market.example',
  });
  const clock = createManualClock(Date.now());
  const log = { info() {}, error() {} };
  const market = createMarket({ store, caller, network: caip2, limits: LIMITS, clock, log });
  const { probeIntervalMs: intervalMs } = LIMITS;
  return { market, schedule: createMarketSchedule({ store, caller, clock, intervalMs, log }), store, clock, db };
}

test('the market lists every route that we sell as our catalogue describes it', async () => {
  const { market, clock, db } = openMarket(service.config.network.caip2);
  const paths = entriesOn(service.deps.listed, 'paid').filter(({ path }) => !path.startsWith('/selftest'));
  const sold = new Map(paths.map((endpoint) => [SELLER + pathOn(endpoint, 'paid'), endpoint]));
  expect(sold.size).toBeGreaterThanOrEqual(20);
  for (const [url, endpoint] of sold) {
    // The market limits its requests to one host per minute.
    await clock.advance(60_000);
    const { isNew, listed } = await market.submit(url, '192.0.2.1');
    const { entry } = listed.listing;
    expect([isNew, entry.url, entry.priceUsd]).toEqual([true, url, endpoint.price?.usd]);
    expect(entry).toMatchObject({ method: 'GET', rail: 'direct', payTo: service.config.seller, name: endpoint.label });
    expect(entry.description).toBe(endpoint.summary.slice(0, entry.description.length));
    expect(entry.params.map(({ name }) => name).sort()).toEqual(Object.keys(endpoint.params.shape).sort());
  }
  const again = await market.submit([...sold.keys()][0], '192.0.2.1');
  expect([again.isNew, again.listed.calls]).toEqual([false, 2]);
  db.close();
});

test('the market’s background job calls a listed route again and finds it online', async () => {
  const { market, schedule, store, clock, db } = openMarket(service.config.network.caip2);
  await market.submit(`${SELLER}/v1/paid/fees/estimate`, '192.0.2.1');
  const place = 'percall.example/v1/paid/fees/estimate';
  const known = await store.find(place);
  await store.record({ ...known!, dueAt: 0 }, 1, 0);
  await schedule.runDue(new AbortController().signal);
  expect(await store.find(place)).toMatchObject({ failures: 0, offlineAt: null, reason: null, method: 'GET' });
  expect((await store.find(place))?.dueAt).toBeGreaterThan(clock.nowMs());
  db.close();
});

test('a market of another chain refuses our priced routes, and every market our free ones', async () => {
  const { market, db } = openMarket('eip155:1');
  const refused = (path: string) => market.submit(SELLER + path, '192.0.2.1').catch(({ code }) => code);
  expect(await refused('/v1/paid/fees/estimate')).toBe('not_payable_here');
  expect(await refused('/v1/fees')).toBe('no_402');
  db.close();
});
