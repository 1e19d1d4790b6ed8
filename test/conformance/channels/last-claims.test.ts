import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { claimedOf } from '../../support/channels/chain-view.ts';
import { channelBuyer, channelEntry } from '../../support/channels/channel-buyer.ts';
import { untilChannelsAreOffered } from '../../support/channels/offered.ts';
import { priceOf } from '../../support/prices.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { balanceOf, newBuyer } from '../../support/usdc/buyer.ts';

const PATH = '/v1/paid/fees/estimate';
/** Base units: the deposit, and the price of a call. */
const [DEPOSIT, PRICE] = [100_000n, priceOf(PATH).units];
/** How long a stop of the service waits for its last claims, in milliseconds. */
const LAST_CLAIMS_MS = 5000;
/** With it the last claims have two minutes. A busy machine may need more than 5 s for them. */
const patientClock: Clock = {
  ...systemClock,
  sleep: (ms, signal) => systemClock.sleep(ms === LAST_CLAIMS_MS ? 24 * ms : ms, signal),
};

let network: EmbeddedNetwork;
let service: Service;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
  service = await startService(network, {
    clock: patientClock,
    env: {
      CHANNELS: 'on',
      CHANNELS_AUTHORIZER_KEY: network.authorizer.privateKey,
      CHANNELS_MIN_DEPOSIT_USDC: '0.1',
      RECONCILE_INTERVAL_MS: '200',
      RECEIPT_POLL_MS: '50',
    },
  });
});
afterAll(async () => {
  await service?.stop();
  await network?.stop();
});

const challenge = async () => String((await service.get(PATH)).headers['payment-required']);

test('a service that stops claims everything that was charged, however little, and pays it out to the seller', async () => {
  await untilChannelsAreOffered(service.origin + PATH);
  const { privateKey } = await newBuyer(network);
  const buyer = channelBuyer(privateKey, channelEntry(await challenge()));
  const pay = async (header: string) => (await service.get(PATH, { headers: { 'payment-signature': header } })).status;
  expect(await pay(buyer.deposit(DEPOSIT, PRICE))).toBe(200);
  expect(await pay(buyer.voucher(2n * PRICE))).toBe(200);
  expect(await claimedOf(network, bytesToHex(buyer.id))).toBe(0n);
  await service.stop();
  expect(await claimedOf(network, bytesToHex(buyer.id))).toBe(2n * PRICE);
  expect(await balanceOf(network, network.seller)).toBe(2n * PRICE);
});
