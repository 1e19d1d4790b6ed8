import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAccount, type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { channelBuyer, channelEntry } from '../../support/channels/channel-buyer.ts';
import { createChannelStage } from '../../support/channels/channel-contract.ts';
import { foreignChannel } from '../../support/channels/foreign-channel.ts';
import { untilChannelsAreOffered } from '../../support/channels/offered.ts';
import { describeServices } from '../../support/ledger/on-ledgers.ts';
import { moodyEndpoint } from '../../support/service/moody-endpoint.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { newBuyer, present } from '../../support/usdc/buyer.ts';
import { newKey } from '../../support/usdc/payments.ts';

const PRICE = 1000n;
const DEPOSIT = 50_000n;

let network: EmbeddedNetwork;
let stage: ReturnType<typeof createChannelStage>;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
  stage = createChannelStage(network);
});
afterAll(() => network?.stop());

describeServices('a payer whom another client names', (ledgerEnv) => {
  const moody = moodyEndpoint('/test/moody', '0.001');
  const path = '/v1/paid/test/moody';
  let service: Service;
  beforeAll(async () => {
    const env = {
      CHANNELS: 'on',
      CHANNELS_AUTHORIZER_KEY: createAccount().privateKey,
      CHANNELS_MIN_DEPOSIT_USDC: '0.02',
      PAYER_FAILURES_PER_MINUTE: '5',
      CLIENT_FAILURES_PER_MINUTE: '0',
      ...(await ledgerEnv()),
      RECEIPT_POLL_MS: '50',
    };
    service = await startService(network, { env, catalogue: [moody.endpoint] });
    await untilChannelsAreOffered(service.origin + path);
  });
  afterAll(() => service?.stop());

  const challenge = async () => String((await service.get(path)).headers['payment-required']);
  const show = (header: string, client: string) => present(service.origin, path, { header }, client);

  /** The same payment with another payer in its channel. */
  function naming(header: string, payer: string, type?: 'refund'): string {
    const payment = JSON.parse(Buffer.from(header, 'base64').toString('utf8'));
    payment.payload.channelConfig.payer = payer;
    if (type) payment.payload.type = type;
    return Buffer.from(JSON.stringify(payment)).toString('base64');
  }

  test('in vouchers and in refunds without any right to it buys as before', async () => {
    const { address, privateKey } = await newBuyer(network, DEPOSIT);
    const entry = channelEntry(await challenge());
    const attacker = channelBuyer(newKey().privateKey, entry);
    for (let time = 0; time < 10; time++) {
      const forged = attacker.voucher(PRICE);
      for (const header of [naming(forged, address), naming(forged, address, 'refund')])
        expect((await show(header, '127.0.0.9')).status).toBe(402);
    }
    const bought = await show(channelBuyer(privateKey, entry).deposit(DEPOSIT, PRICE), '127.0.0.2');
    expect([bought.status, bought.body]).toEqual([200, expect.stringContaining('run')]);
  });

  test('in a channel that this client has funded and whose calls fail buys as before, by a deposit and exactly', async () => {
    const named = await newBuyer(network, 2n * DEPOSIT);
    const entry = channelEntry(await challenge());
    const foreign = await foreignChannel(network, stage, { payer: named.address, entry, units: PRICE });
    moody.fail();
    for (let time = 0; time < 5; time++) expect((await show(foreign.voucher(PRICE), '127.0.0.9')).status).toBe(502);
    // It is the failures of the key that signs for the channel that count.
    expect((await show(foreign.voucher(PRICE), '127.0.0.10')).status).toBe(429);
    moody.recover();
    const exact = await named.sign(service.origin, path);
    expect((await present(service.origin, path, exact, '127.0.0.2')).status).toBe(200);
    const own = channelBuyer(named.privateKey, entry);
    expect((await show(own.deposit(DEPOSIT, PRICE), '127.0.0.2')).status).toBe(200);
    expect((await show(own.voucher(2n * PRICE), '127.0.0.2')).status).toBe(200);
  });
});
