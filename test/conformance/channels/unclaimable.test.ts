import { x402Client } from '@x402/core/client';
import { BatchSettlementEvmScheme } from '@x402/evm/batch-settlement/client';
import { wrapFetchWithPayment } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createAccount, type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { createAheadClock } from '../../support/ahead-clock.ts';
import { untilChannelsAreOffered } from '../../support/channels/offered.ts';
import { metricOf } from '../../support/service/metric.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { until } from '../../support/service/workers.ts';
import { newBuyer } from '../../support/usdc/buyer.ts';

const PATH = '/v1/paid/fees/estimate';
const HOUR_MS = 3_600_000;

let network: EmbeddedNetwork;
const clock = createAheadClock();
let service: Service;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  const env = {
    CHANNELS: 'on',
    CHANNELS_AUTHORIZER_KEY: createAccount().privateKey,
    CHANNELS_MIN_DEPOSIT_USDC: '0.1',
    PRICES: 'fees/estimate=0.0005',
    CHANNELS_CLAIM_FROM_USDC: '0.0001',
    CHANNELS_CLAIM_AFTER_SECONDS: '3600',
    RECONCILE_INTERVAL_MS: '200',
    RECEIPT_POLL_MS: '50',
  };
  service = await startService(network, { env, clock });
});
afterAll(async () => {
  await service?.stop();
  await network.stop();
});

const setGas = (wei: bigint) => network.rpc('anvil_setBalance', [network.relayer.address, `0x${wei.toString(16)}`]);
/** A stock client with a key and money of its own. */
async function buyer(): Promise<() => Promise<Response>> {
  await untilChannelsAreOffered(service.origin + PATH);
  const { privateKey } = await newBuyer(network);
  const scheme = new BatchSettlementEvmScheme(privateKeyToAccount(bytesToHex(privateKey)));
  const allowed = [{ network: 'eip155:5042' as const, asset: network.usdc }];
  const client = new x402Client().register('eip155:5042', scheme).setSpendControls({ allowedAssets: allowed });
  return () => wrapFetchWithPayment(fetch, client)(service.origin + PATH);
}
const canSettle = async () => (await service.deps.payments.readiness()).others.channels?.ok;

// The second test leaves charges that take a while to be claimed.
describe('a seller without gas for claims', { shuffle: false }, () => {
  test('sells vouchers for a while without claims, then refuses them without a charge, and sells again once claims can be sent', async () => {
    const pay = await buyer();
    expect((await pay()).status).toBe(200);

    await setGas(0n);
    await until('the relayer has no gas', async () => (await canSettle()) === false);
    expect((await pay()).status).toBe(200);
    clock.aheadMs = 2 * HOUR_MS + 60_000;
    const refused = await pay();
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5']);
    expect(await refused.json()).toMatchObject({ code: 'settlement_unavailable', charged: false });

    await setGas(10n ** 20n);
    await until('the relayer has gas', async () => (await canSettle()) === true);
    const sold = await pay();
    expect(sold.status).toBe(200);
    const receipt = JSON.parse(atob(String(sold.headers.get('payment-response'))));
    const price = BigInt(receipt.extra.chargedAmount);
    expect(receipt.extra.channelState.chargedCumulativeAmount).toBe(String(3n * price));
  });

  const metric = (name: string) => metricOf(service.origin, name);

  test('shows in its metrics what is not claimed, and sells on no channel once too much is charged while claims fail', async () => {
    // Deposits are signed by the machine's clock.
    clock.aheadMs = 0;
    const [debtor, other] = [await buyer(), await buyer()];
    for (const pay of [debtor, other]) expect((await pay()).status).toBe(200);
    await until('all is claimed', async () => (await metric('channels_claimable_usdc')) === 0);
    expect(await metric('channels_oldest_unclaimed_timestamp_seconds')).toBeNull();

    await setGas(0n);
    await until('the relayer has no gas', async () => (await canSettle()) === false);
    // Ten times the threshold is two calls.
    for (let call = 0; call < 2; call++) expect((await debtor()).status).toBe(200);
    for (const pay of [debtor, other]) {
      const refused = await pay();
      expect(refused.status).toBe(503);
      expect(await refused.json()).toMatchObject({ code: 'settlement_unavailable', charged: false });
    }
    expect(await metric('channels_claimable_usdc')).toBe(0.001);
    expect(await metric('channels_oldest_unclaimed_timestamp_seconds')).toBeGreaterThan(0);
    await setGas(10n ** 20n);
    await until('the relayer has gas', async () => (await canSettle()) === true);
    expect((await other()).status).toBe(200);
  });
});
