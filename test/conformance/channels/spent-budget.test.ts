import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { claimedOf } from '../../support/channels/chain-view.ts';
import { channelBuyer } from '../../support/channels/channel-buyer.ts';
import { untilChannelsAreOffered } from '../../support/channels/offered.ts';
import { priceOf } from '../../support/prices.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { until } from '../../support/service/workers.ts';
import { balanceOf, newBuyer } from '../../support/usdc/buyer.ts';

const PATH = '/v1/paid/fees/estimate';
/** Base units: the deposit, and the price of a call. */
const [DEPOSIT, PRICE] = [100_000n, priceOf(PATH).units];

let network: EmbeddedNetwork;
let service: Service;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
  service = await startService(network, {
    env: {
      CHANNELS: 'on',
      CHANNELS_AUTHORIZER_KEY: network.authorizer.privateKey,
      CHANNELS_MIN_DEPOSIT_USDC: '0.1',
      RECONCILE_INTERVAL_MS: '200',
      RECEIPT_POLL_MS: '50',
      // The gas of one deposit uses it up.
      RELAYER_DAILY_GAS_USDC: '0.000001',
    },
  });
});
afterAll(async () => {
  await service?.stop();
  await network?.stop();
});

test('a day whose gas budget is used up sells nothing that needs a transaction, and its refunds and claims are sent all the same', async () => {
  const { privateKey } = await newBuyer(network);
  const buyer = channelBuyer(privateKey, await untilChannelsAreOffered(service.origin + PATH));
  const present = (header: string) => service.get(PATH, { headers: { 'payment-signature': header } });
  const before = await balanceOf(network, buyer.address);
  expect((await present(buyer.deposit(DEPOSIT, PRICE))).status).toBe(200);
  await until('the budget is used up', async () =>
    (await service.get('/readyz')).body.includes('gas budget is used up'),
  );
  const refused = await present(buyer.deposit(DEPOSIT, 2n * PRICE));
  expect([refused.status, JSON.parse(refused.body)]).toMatchObject([503, { code: 'settlement_unavailable' }]);
  // A voucher needs no transaction of its own.
  expect((await present(buyer.voucher(2n * PRICE))).status).toBe(200);
  expect((await present(buyer.refund(2n * PRICE))).status).toBe(200);
  expect(await balanceOf(network, buyer.address)).toBe(before - 2n * PRICE);
  await service.stop();
  expect(await claimedOf(network, bytesToHex(buyer.id))).toBe(2n * PRICE);
  expect(await balanceOf(network, network.seller)).toBe(2n * PRICE);
});
