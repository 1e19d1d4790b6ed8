import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type EmbeddedLightning, startEmbeddedLightning } from '../../../dev/lightning/lightning.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { type LightningService, startLightningService } from '../../support/lightning/lightning-service.ts';
import { call } from '../../support/service/service.ts';
import { fixture, packagesEnvironment } from '../../support/upstream/packages.ts';
import { type Replay, startReplay } from '../../support/upstream/replay.ts';

// Over Lightning the answer is made before the invoice. So a client that never pays learns whether a package exists, at the cost of our requests.

/** The service's own limit of unpaid runs for a client and minute. */
const RUNS = 30;

let lightning: EmbeddedLightning;
let upstream: Replay;
let shop: LightningService;
let nowMs = Math.ceil(Date.now() / 60_000) * 60_000;
const clock: Clock = { ...systemClock, nowMs: () => nowMs };

beforeAll(async () => {
  lightning = await startEmbeddedLightning();
  upstream = await startReplay({
    'POST /v1/query': { body: '{}' },
    'GET /legacy': { body: fixture('npm/legacy.json') },
  });
  const limits = { LIGHTNING_INVOICES_PER_MINUTE: String(RUNS), LIGHTNING_INVOICES_TOTAL_PER_MINUTE: '600' };
  shop = await startLightningService(lightning, { clock, env: { ...limits, ...packagesEnvironment(upstream.url) } });
});
afterAll(async () => {
  await shop?.stop();
  await upstream?.stop();
  await lightning?.stop();
});
beforeEach(() => {
  // Another minute of the clock, with counts of its own.
  nowMs += 60_000;
  upstream.received.length = 0;
});

const ask = (query: string) => call(shop.origin, `/v1/lightning/packages/${query}`, { from: '127.0.1.1' });

/** The statuses of calls one after another. */
async function statusesOf(queries: readonly string[]): Promise<number[]> {
  const statuses: number[] = [];
  for (const query of queries) statuses.push((await ask(query)).status);
  return statuses;
}

test.each([
  ['vulns', (at: number) => `vulns?name=none-${at}`, 2],
  ['vulns of PyPI', (at: number) => `vulns?ecosystem=pypi&name=none-${at}`, 2],
  ['vulns of NuGet', (at: number) => `vulns?ecosystem=nuget&name=none-${at}`, 2],
  ['npm', (at: number) => `npm?name=absent-${at}`, 1],
  ['pypi', (at: number) => `pypi?name=absent-${at}`, 1],
])('packages/%s: a minute of other names costs thirty runs, and then nothing', async (_what, queryOf, each) => {
  const statuses = await statusesOf(Array.from({ length: RUNS + 10 }, (_, at) => queryOf(at)));
  expect(statuses).toEqual([...Array(RUNS).fill(404), ...Array(10).fill(429)]);
  expect(upstream.received).toHaveLength(RUNS * each);
});

test('packages/vulns: a minute of the same name costs one question', async () => {
  expect(await statusesOf(Array(RUNS).fill('vulns?name=none'))).toEqual(Array(RUNS).fill(404));
  expect(upstream.received.map(({ method, url }) => `${method} ${url}`)).toEqual([
    'GET /none/latest',
    'POST /v1/query',
  ]);
});
