import { request } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { createAheadClock } from '../../support/ahead-clock.ts';
import { channelBuyer } from '../../support/channels/channel-buyer.ts';
import { untilChannelsAreOffered } from '../../support/channels/offered.ts';
import { channelEnv } from '../../support/channels/stock-buyer.ts';
import { latchedEndpoint } from '../../support/service/latch.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { until } from '../../support/service/workers.ts';
import { decoded, newBuyer, present } from '../../support/usdc/buyer.ts';

const [MINUTE_MS, DAY_MS] = [60_000, 86_400_000];
const latch = latchedEndpoint();
let network: EmbeddedNetwork;
let service: Service;
const clock = createAheadClock();
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
  const env = { ...channelEnv('0.01'), COLLECTOR: 'off', RECONCILE_INTERVAL_MS: '100' };
  service = await startService(network, { env, catalogue: [latch.endpoint], clock });
});
afterAll(async () => {
  await service?.stop();
  await network?.stop();
});

test('a deposit whose answer was not fetched for a week is 410 with its receipt, which tells the charges', async () => {
  const url = `${service.origin}${latch.path}`;
  const { privateKey } = await newBuyer(network);
  const buyer = channelBuyer(privateKey, await untilChannelsAreOffered(url));
  const header = buyer.deposit(10_000n, 1000n);
  // The buyer leaves while its deposit is being settled.
  await network.pauseMining();
  const left = request(url, { headers: { 'payment-signature': header } });
  left.on('error', () => {});
  left.end();
  const counts = () => service.deps.payments.ledger.countByState();
  try {
    await until('the deposit is on its way', async () => {
      const { settling, unknown } = await counts();
      return settling + unknown === 1;
    });
  } finally {
    left.destroy();
    await network.resumeMining();
  }
  await until('the deposit is made', async () => (await counts()).settled === 1);
  clock.aheadMs += 7 * DAY_MS + MINUTE_MS;
  const gone = await present(service.origin, latch.path, { header });
  expect([gone.status, JSON.parse(gone.body)]).toMatchObject([410, { code: 'answer_gone', charged: true }]);
  const receipt = decoded(gone, 'payment-response');
  expect(receipt).toMatchObject({ success: true, amount: '10000' });
  expect(receipt.extra).toMatchObject({ channelState: { balance: '10000', chargedCumulativeAmount: '1000' } });
});
