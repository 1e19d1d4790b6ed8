import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { createAheadClock } from '../support/ahead-clock.ts';
import { startService } from '../support/service/service.ts';
import { until } from '../support/service/workers.ts';

let network: EmbeddedNetwork;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
});
afterAll(() => network.stop());

const clockOf = async (service: Awaited<ReturnType<typeof startService>>) => {
  const { status, body } = await service.get('/readyz');
  return { status, clock: JSON.parse(body).checks.clock as { ok: boolean; detail?: string } };
};

test.each([
  [3_600_000, 'ahead of'],
  [-3_600_000, 'behind'],
])('/readyz of a service whose clock is %i ms off says so, and goes on selling', async (aheadMs, words) => {
  const clock = createAheadClock();
  clock.aheadMs = aheadMs;
  const service = await startService(network, { clock });
  await until('the clock is found to be off', async () => (await clockOf(service)).clock.ok === false);
  const { status, clock: check } = await clockOf(service);
  expect(status).toBe(200);
  const said = new RegExp(
    `^this machine's clock is (3599|3600|359\\d) s ${words} the chain's newest block: set it by NTP$`,
  );
  expect(check.detail).toMatch(said);
  await service.stop();
});

test('/readyz of a service whose clock is right says that', async () => {
  const service = await startService(network);
  expect((await clockOf(service)).clock).toEqual({ ok: true });
  await service.stop();
});
