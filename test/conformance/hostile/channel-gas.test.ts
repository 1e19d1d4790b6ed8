import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAccount, type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { createAheadClock } from '../../support/ahead-clock.ts';
import { channelBuyer, channelEntry } from '../../support/channels/channel-buyer.ts';
import { untilChannelsAreOffered } from '../../support/channels/offered.ts';
import { describeServices } from '../../support/ledger/on-ledgers.ts';
import { elapse } from '../../support/service/elapse.ts';
import { moodyEndpoint } from '../../support/service/moody-endpoint.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { balanceOf, newBuyer, present } from '../../support/usdc/buyer.ts';

/** 0.02 USDC: the least deposit here, and five calls. */
const DEPOSIT = 20_000n;
const PRICE = 4000n;
/** Deposits a day here of one payer, and of one client. */
const LIMIT = { payer: 3, client: 5 };

let network: EmbeddedNetwork;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
});
afterAll(() => network?.stop());

describeServices('the gas of deposits into payment channels', (ledgerEnv, testMemory) => {
  const { endpoint, fail, recover, runs } = moodyEndpoint('/test/moody', '0.004');
  const path = '/v1/paid/test/moody';
  let service: Service;
  const clock = createAheadClock();
  beforeAll(async () => {
    const env = {
      CHANNELS: 'on',
      CHANNELS_AUTHORIZER_KEY: createAccount().privateKey,
      CHANNELS_MIN_DEPOSIT_USDC: '0.02',
      CHANNELS_PAYER_DEPOSITS_PER_DAY: String(LIMIT.payer),
      CHANNELS_CLIENT_DEPOSITS_PER_DAY: String(LIMIT.client),
      RECEIPT_POLL_MS: '50',
      RECONCILE_INTERVAL_MS: '200',
      ...(await ledgerEnv()),
    };
    service = await startService(network, { env, catalogue: [endpoint], clock });
    await untilChannelsAreOffered(service.origin + path);
  });
  afterAll(() => service?.stop());

  const challenge = async () => String((await service.get(path)).headers['payment-required']);
  const sent = () => network.rpc<string>('eth_getTransactionCount', [network.relayer.address, 'latest']);

  /** A payer with some deposits, who asks from this client. Each of its channels has another salt. */
  async function payerAt(client: string, deposits = 1n) {
    const { address, privateKey } = await newBuyer(network, deposits * DEPOSIT);
    const entry = channelEntry(await challenge());
    const open = (salt: number) => channelBuyer(privateKey, entry, Buffer.alloc(32, salt));
    return { address, open, pay: (header: string) => present(service.origin, path, { header }, client) };
  }

  test('is not spent on a payer who takes each deposit back and pays it in again', async () => {
    const { address, open, pay } = await payerAt('127.0.0.2');
    for (let round = 0; round < LIMIT.payer; round++) {
      const channel = open(round);
      expect((await pay(channel.deposit(DEPOSIT, PRICE))).status).toBe(200);
      // A channel that was read less than two seconds ago is not read again.
      await elapse(service, clock);
      expect((await pay(channel.refund(PRICE))).status).toBe(200);
      await network.fundUsdc(address, PRICE);
      expect(await balanceOf(network, address)).toBe(DEPOSIT);
    }
    const [before, ran] = [await sent(), runs()];
    const refused = await pay(open(99).deposit(DEPOSIT, PRICE));
    expect(refused.status).toBe(429);
    expect(JSON.parse(refused.body)).toMatchObject({
      code: 'too_many_deposits',
      charged: false,
      detail: expect.stringContaining('"exact"'),
    });
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(80_000);
    expect([await sent(), runs(), await balanceOf(network, address)]).toEqual([before, ran, DEPOSIT]);
  });

  test('is always spent on top-ups of a channel whose money was spent on calls', async () => {
    const { open, pay } = await payerAt('127.0.0.3', 8n);
    const channel = open(0);
    const calls = DEPOSIT / PRICE;
    for (let call = 1n; call <= 6n * calls; call++) {
      const isEmpty = (call - 1n) % calls === 0n;
      const header = isEmpty ? channel.deposit(DEPOSIT, call * PRICE) : channel.voucher(call * PRICE);
      const answer = await pay(header);
      expect([call, answer.status]).toEqual([call, 200]);
    }
  });

  // The counts of a day are in the service's memory. The first test counts on every ledger.
  testMemory('is not spent on many new payers of one client, and other clients notice nothing of it', async () => {
    for (let count = 0; count < LIMIT.client; count++) {
      const { open, pay } = await payerAt('127.0.0.4');
      expect((await pay(open(0).deposit(DEPOSIT, PRICE))).status).toBe(200);
    }
    const [late, other] = [await payerAt('127.0.0.4'), await payerAt('127.0.0.5')];
    const refused = await late.pay(late.open(0).deposit(DEPOSIT, PRICE));
    expect([refused.status, JSON.parse(refused.body).code]).toEqual([429, 'too_many_deposits']);
    expect((await other.pay(other.open(0).deposit(DEPOSIT, PRICE))).status).toBe(200);
  });

  test('is not counted for calls that failed, because no deposit was sent for them', async () => {
    const { open, pay } = await payerAt('127.0.0.6');
    fail();
    for (let count = 0; count < LIMIT.payer + 1; count++)
      expect((await pay(open(0).deposit(DEPOSIT, PRICE))).status).toBe(502);
    recover();
    expect((await pay(open(0).deposit(DEPOSIT, PRICE))).status).toBe(200);
  });
});
