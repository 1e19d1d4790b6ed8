import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { type Service, startService } from '../../support/service/service.ts';

const POLL_MS = 250;

let network: EmbeddedNetwork;
let service: Service;

beforeAll(async () => {
  network = await startEmbeddedNetwork({ traffic: false });
});
afterEach(async () => {
  await service.stop();
});
afterAll(async () => {
  await network?.stop();
});

async function health() {
  const { status: code, headers, body } = await service.get('/v1/health');
  return { code, headers, ...JSON.parse(body) };
}

/** Waits until health has this status, and returns that answer. Fails with the last answer. */
async function until(status: string, withinMs = 120_000) {
  const deadline = Date.now() + withinMs;
  let last = await health();
  while (last.status !== status) {
    if (Date.now() > deadline) throw new Error(`not ${status} in time: ${JSON.stringify(last)}`);
    await delay(25);
    last = await health();
  }
  return last;
}

test('health answers 503 with its own body while the head does not move, and 200 after the next block', async () => {
  service = await startService(network, { env: { COLLECTOR_POLL_MS: String(POLL_MS), HEALTH_STALLED_SECONDS: '2' } });
  expect((await until('ok')).code).toBe(200);
  await network.pauseMining();
  const { code, headers, thresholds, readings } = await until('stalled');
  expect({ code, thresholds }).toMatchObject({ code: 503, thresholds: { stalledSeconds: 2 } });
  expect(readings.headMovedSecondsAgo).toBeGreaterThan(2);
  expect(headers).toMatchObject({ 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' });
  // One block would be two seconds old after a pause.
  await network.mine();
  await network.resumeMining();
  expect((await until('ok')).code).toBe(200);
});

test('health answers 503 while the collector is behind a head that moved far ahead, and 200 after it has caught up', async () => {
  service = await startService(network, {
    env: { COLLECTOR_REQUESTS_PER_SECOND: '3', COLLECTOR_POLL_MS: '300', HEALTH_LAG_BLOCKS: '10' },
  });
  await until('ok');
  // In one call, because the collector would keep up with a busy node that makes them one at a time.
  await network.rpc('anvil_mine', ['0xc8']);
  const { code, readings, freshness } = await until('lagging');
  expect(code).toBe(503);
  expect(readings.lagBlocks).toBe(freshness.head - freshness.collected);
  expect((await until('ok')).code).toBe(200);
});
