import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAccount, type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { channelBuyer, channelEntry } from '../../support/channels/channel-buyer.ts';
import { untilChannelsAreOffered } from '../../support/channels/offered.ts';
import { describeServices } from '../../support/ledger/on-ledgers.ts';
import { moodyEndpoint } from '../../support/service/moody-endpoint.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { newBuyer, present } from '../../support/usdc/buyer.ts';

const PRICE = 1000n;
/** Three calls. */
const DEPOSIT = 3000n;
const FAILURES = 5;

let network: EmbeddedNetwork;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
});
afterAll(() => network?.stop());

describeServices('reads of the chain for a payment channel', (ledgerEnv) => {
  const { endpoint, runs } = moodyEndpoint('/test/moody', '0.001');
  const path = '/v1/paid/test/moody';
  let service: Service;
  beforeAll(async () => {
    const env = {
      CHANNELS: 'on',
      CHANNELS_AUTHORIZER_KEY: createAccount().privateKey,
      CHANNELS_MIN_DEPOSIT_USDC: '0.003',
      CLIENT_FAILURES_PER_MINUTE: String(FAILURES),
      RECEIPT_POLL_MS: '50',
      ...(await ledgerEnv()),
    };
    service = await startService(network, { env, catalogue: [endpoint] });
    await untilChannelsAreOffered(service.origin + path);
  });
  afterAll(() => service?.stop());

  const challenge = async () => String((await service.get(path)).headers['payment-required']);

  test('that lacks one call are bounded: its vouchers count as failures of their client', async () => {
    const { privateKey } = await newBuyer(network, DEPOSIT);
    const channel = channelBuyer(privateKey, channelEntry(await challenge()));
    const show = (header: string, client: string) => present(service.origin, path, { header }, client);
    expect((await show(channel.deposit(DEPOSIT, PRICE), '127.0.0.2')).status).toBe(200);
    for (const max of [2n * PRICE, DEPOSIT]) expect((await show(channel.voucher(max), '127.0.0.2')).status).toBe(200);
    const ran = runs();
    const short = channel.voucher(DEPOSIT + PRICE);
    for (let time = 0; time < FAILURES; time++) expect((await show(short, '127.0.0.3')).status).toBe(402);
    const refused = await show(short, '127.0.0.3');
    expect([refused.status, JSON.parse(refused.body)]).toMatchObject([
      429,
      { code: 'client_failures', charged: false },
    ]);
    expect(runs()).toBe(ran);
  });

  test('that knows old charges are none: such a voucher costs no read and counts as no failure', async () => {
    const { privateKey } = await newBuyer(network, DEPOSIT);
    const channel = channelBuyer(privateKey, channelEntry(await challenge()));
    const show = (header: string) => present(service.origin, path, { header }, '127.0.0.4');
    expect((await show(channel.deposit(DEPOSIT, PRICE))).status).toBe(200);
    for (let time = 0; time < 2 * FAILURES; time++) expect((await show(channel.voucher(DEPOSIT))).status).toBe(402);
    expect((await show(channel.voucher(2n * PRICE))).status).toBe(200);
  });
});
