import { privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAccount, type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { depositPayment } from '../../../src/payment/channels/deposit.ts';
import { readPayload } from '../../../src/payment/channels/scheme.ts';
import { type ChannelBuyer, channelBuyer, channelEntry } from '../../support/channels/channel-buyer.ts';
import { createChannelStage } from '../../support/channels/channel-contract.ts';
import { foreignChannel } from '../../support/channels/foreign-channel.ts';
import { untilChannelsAreOffered } from '../../support/channels/offered.ts';
import { describeServices } from '../../support/ledger/on-ledgers.ts';
import { moodyEndpoint } from '../../support/service/moody-endpoint.ts';
import { type Answer, type Service, startService } from '../../support/service/service.ts';
import { until } from '../../support/service/workers.ts';
import { balanceOf, errorOf, newBuyer, present } from '../../support/usdc/buyer.ts';

/** 0.001 USDC. */
const PRICE = 1000n;
/** 0.1 USDC. */
const DEPOSIT = 100_000n;
/** Where the buyers ask from. Each test's third party has an address of its own, because refunds are counted for a day. */
const HOME = '127.0.0.1';

let network: EmbeddedNetwork;
let stage: ReturnType<typeof createChannelStage>;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
  stage = createChannelStage(network);
});
afterAll(() => network?.stop());

describeServices('a refund of a payment channel', (ledgerEnv, testMemory) => {
  const { endpoint } = moodyEndpoint('/test/moody', '0.001');
  const path = '/v1/paid/test/moody';
  let service: Service;
  beforeAll(async () => {
    const env = {
      CHANNELS: 'on',
      CHANNELS_AUTHORIZER_KEY: createAccount().privateKey,
      CHANNELS_MIN_DEPOSIT_USDC: '0.1',
      RECEIPT_POLL_MS: '50',
      RECONCILE_INTERVAL_MS: '200',
      ...(await ledgerEnv()),
    };
    service = await startService(network, { env, catalogue: [endpoint] });
    await untilChannelsAreOffered(service.origin + path);
  });
  afterAll(() => service?.stop());

  const challenge = async () => String((await service.get(path)).headers['payment-required']);
  const show = (header: string, client = HOME) => present(service.origin, path, { header }, client);
  const transactions = () => network.rpc<string>('eth_getTransactionCount', [network.relayer.address, 'latest']);
  const codeOf = ({ status, body }: Answer) => [status, JSON.parse(body).code];

  /** Channels of one new payer, each with a deposit that has bought one call from HOME. A claim would make their vouchers public. */
  async function bought(count: number): Promise<ChannelBuyer[]> {
    const { privateKey } = await newBuyer(network, BigInt(count) * DEPOSIT);
    const entry = channelEntry(await challenge());
    const channels = Array.from({ length: count }, (_, at) => channelBuyer(privateKey, entry, Buffer.alloc(32, at)));
    for (const channel of channels) expect((await show(channel.deposit(DEPOSIT, PRICE))).status).toBe(200);
    return channels;
  }

  test('that third parties ask for leaves the payer’s own refunds of the day, and costs gas once for each payer', async () => {
    const [first, second, third, fourth] = (await bought(4)) as [
      ChannelBuyer,
      ChannelBuyer,
      ChannelBuyer,
      ChannelBuyer,
    ];
    expect((await show(first.refund(PRICE), '127.0.0.21')).status).toBe(200);
    const before = await transactions();
    for (const client of ['127.0.0.21', '127.0.0.22', '127.0.0.23'])
      expect(codeOf(await show(second.refund(PRICE), client))).toEqual([429, 'refund_too_soon']);
    expect(await transactions()).toBe(before);
    for (const own of [second, third, fourth]) expect((await show(own.refund(PRICE))).status).toBe(200);
    expect(await balanceOf(network, first.address)).toBe(4n * (DEPOSIT - PRICE));
  });

  // The counts of a day are in the service's memory. The test above counts on every ledger.
  testMemory(
    'that one client asks for in other payers’ channels is made three times a day, and the payers notice nothing of it',
    async () => {
      const channels = (await Promise.all(Array.from({ length: 4 }, () => bought(1)))).flat();
      const asked: number[] = [];
      for (const channel of channels) asked.push((await show(channel.refund(PRICE), '127.0.0.31')).status);
      expect(asked).toEqual([200, 200, 200, 429]);
      expect((await show(channels[3]!.refund(PRICE))).status).toBe(200);
    },
  );

  testMemory(
    'of channels that another client has funded in the payer’s name leaves the payer’s own refunds of the day',
    async () => {
      const [own] = (await bought(1)) as [ChannelBuyer];
      const entry = channelEntry(await challenge());
      for (let channel = 0; channel < 3; channel++) {
        // Just enough for a call, and for a refund.
        const terms = { payer: own.address, entry, units: PRICE + 10_000n };
        const foreign = await foreignChannel(network, stage, terms);
        expect((await show(foreign.voucher(PRICE), '127.0.0.51')).status).toBe(200);
        expect((await show(foreign.refund(PRICE), '127.0.0.51')).status).toBe(200);
      }
      expect((await show(own.refund(PRICE))).status).toBe(200);
      expect(await balanceOf(network, own.address)).toBe(DEPOSIT - PRICE + 30_000n);
    },
  );

  test('goes back to a buyer who asks from another address', async () => {
    const [channel] = (await bought(1)) as [ChannelBuyer];
    expect((await show(channel.refund(PRICE), '127.0.0.41')).status).toBe(200);
    expect(await balanceOf(network, channel.address)).toBe(DEPOSIT - PRICE);
  });

  test('that has bought nothing here is refused with the scheme’s own word, and costs no gas', async () => {
    const { privateKey, address } = await newBuyer(network, DEPOSIT);
    const channel = channelBuyer(privateKey, channelEntry(await challenge()));
    const payload = readPayload(JSON.parse(atob(channel.deposit(DEPOSIT, PRICE))).payload);
    if (payload.kind !== 'deposit') throw new Error('this is no deposit');
    const { to, data } = depositPayment(payload).contractCall ?? {};
    if (!to || !data) throw new Error('a deposit without a call');
    const other = await stage.walletOf(privateKeyToAccount(createAccount().privateKey));
    const hash = await other.sendTransaction({ to: bytesToHex(to), data: bytesToHex(data) });
    await stage.chain.waitForTransactionReceipt({ hash });
    const before = await transactions();
    expect(errorOf(await show(channel.refund(0n)))).toEqual([402, 'invalid_batch_settlement_evm_refund_no_balance']);
    expect([await transactions(), await balanceOf(network, address)]).toEqual([before, 0n]);
  });

  test('that cannot be sent now is refused before it is stored, and the channel goes on buying', async () => {
    const [channel] = (await bought(1)) as [ChannelBuyer];
    const setGas = (wei: bigint) => network.rpc('anvil_setBalance', [network.relayer.address, `0x${wei.toString(16)}`]);
    const canSettle = async () => (await service.deps.payments.readiness()).others.channels?.ok;
    await setGas(0n);
    await until('the relayer has no gas', async () => (await canSettle()) === false);
    const refused = await show(channel.refund(PRICE)).finally(() => setGas(10n ** 20n));
    expect([refused.status, JSON.parse(refused.body)]).toMatchObject([
      503,
      { code: 'settlement_unavailable', charged: false },
    ]);
    expect((await show(channel.voucher(2n * PRICE))).status).toBe(200);
    await until('the relayer has gas', async () => (await canSettle()) === true);
    expect((await show(channel.refund(2n * PRICE))).status).toBe(200);
  });
});
