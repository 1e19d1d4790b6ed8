import { privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAccount, type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import { signRecoverable } from '../../../src/lib/secp256k1.ts';
import { depositPayment } from '../../../src/payment/channels/deposit.ts';
import { readPayload } from '../../../src/payment/channels/scheme.ts';
import { authorizationDigest } from '../../../src/payment/usdc/authorization.ts';
import { domainSeparator } from '../../../src/payment/usdc/token.ts';
import { createAheadClock } from '../../support/ahead-clock.ts';
import { type ChannelBuyer, channelBuyer, channelEntry } from '../../support/channels/channel-buyer.ts';
import { createChannelStage } from '../../support/channels/channel-contract.ts';
import { scheme } from '../../support/channels/channel-payment.ts';
import { untilChannelsAreOffered } from '../../support/channels/offered.ts';
import { describeServices } from '../../support/ledger/on-ledgers.ts';
import { elapse } from '../../support/service/elapse.ts';
import { latchedEndpoint } from '../../support/service/latch.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { balanceOf, decoded, errorOf, newBuyer, present } from '../../support/usdc/buyer.ts';
import { cancelCalldata, newOutsider } from '../../support/usdc/outsider.ts';

/** 0.001 USDC. */
const PRICE = 1000n;
/** 0.1 USDC. */
const DEPOSIT = 100_000n;
const PREFIX = 'invalid_batch_settlement_evm_';

let network: EmbeddedNetwork;
let stage: ReturnType<typeof createChannelStage>;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
  stage = createChannelStage(network);
});
afterAll(() => network?.stop());

/** What a PAYMENT-SIGNATURE value puts into a channel. */
function depositOf(header: string) {
  const payload = readPayload(JSON.parse(atob(header)).payload);
  if (payload.kind !== 'deposit') throw new Error('this is no deposit');
  return depositPayment(payload);
}

describeServices('a deposit into a payment channel', (ledgerEnv) => {
  const latch = latchedEndpoint('/test/latch', '0.001');
  let service: Service;
  const authorizer = createAccount();
  const clock = createAheadClock();
  beforeAll(async () => {
    const env = {
      CHANNELS: 'on',
      CHANNELS_AUTHORIZER_KEY: authorizer.privateKey,
      CHANNELS_MIN_DEPOSIT_USDC: '0.1',
      RECEIPT_POLL_MS: '50',
      RECONCILE_INTERVAL_MS: '200',
      ...(await ledgerEnv()),
    };
    service = await startService(network, { env, catalogue: [latch.endpoint], clock });
    await untilChannelsAreOffered(service.origin + latch.path);
  });
  afterAll(() => service?.stop());

  const challenge = async () => String((await service.get(latch.path)).headers['payment-required']);
  const pay = (header: string) => present(service.origin, latch.path, { header });
  const balanceIn = async ({ id }: ChannelBuyer) =>
    (await stage.read<[bigint, bigint]>('channels', [bytesToHex(id)]))[0];
  const refused = (name: string) => [402, PREFIX + name];

  /** A payer with exactly one deposit. */
  async function payer() {
    const buyer = await newBuyer(network, DEPOSIT);
    const exact = async () => (await buyer.sign(service.origin, latch.path)).header;
    return { ...buyer, exact, channel: channelBuyer(buyer.privateKey, channelEntry(await challenge())) };
  }

  /** A deposit whose settlement reverts, because its payer has moved the balance away for a while. */
  async function reverted() {
    const { address, channel, privateKey } = await payer();
    const deposit = channel.deposit(DEPOSIT, PRICE);
    latch.close();
    const answer = pay(deposit);
    await latch.started();
    await network.fundUsdc(address, -DEPOSIT);
    latch.open();
    const failed = await answer;
    await network.mine();
    await network.fundUsdc(address, DEPOSIT);
    return { address, channel, privateKey, deposit, failed };
  }

  /** A third party sends the deposit, which is public by now. */
  async function sendByOther(deposit: string): Promise<void> {
    const { to, data } = depositOf(deposit).contractCall ?? {};
    if (!to || !data) throw new Error('a deposit without a call');
    const other = await stage.walletOf(privateKeyToAccount(createAccount().privateKey));
    const hash = await other.sendTransaction({ to: bytesToHex(to), data: bytesToHex(data) });
    await stage.chain.waitForTransactionReceipt({ hash });
    // A channel that was read less than two seconds ago is not read again.
    await elapse(service, clock);
  }

  /** Gives all of a channel's money back to its payer. A payer's own withdrawal does the same, a day later. */
  async function refundByAuthorizer({ id, config }: ChannelBuyer): Promise<void> {
    const signature = signRecoverable(scheme.refundDigest(id, 0n, DEPOSIT), hexToBytes(authorizer.privateKey));
    const texts = Object.entries(config).map(([name, value]) => [
      name,
      value instanceof Uint8Array ? bytesToHex(value) : value,
    ]);
    await stage.call('refundWithSignature', [Object.fromEntries(texts), DEPOSIT, 0n, bytesToHex(signature)]);
  }

  test('that a third party has sent after it reverted buys its call once', async () => {
    const { address, channel, deposit } = await reverted();
    await sendByOther(deposit);
    expect([await balanceOf(network, address), await balanceIn(channel)]).toEqual([0n, DEPOSIT]);
    const served = await pay(deposit);
    expect(served.status).toBe(200);
    const { extra } = decoded(served, 'payment-response') as { extra: Record<string, unknown> };
    expect(extra).toMatchObject({ chargedAmount: String(PRICE), channelState: { balance: String(DEPOSIT) } });
    expect((await pay(deposit)).body).toBe(served.body);
  });

  test('that a third party has sent buys nothing once its money has gone back to the payer', async () => {
    const { address, channel, deposit } = await reverted();
    await sendByOther(deposit);
    await refundByAuthorizer(channel);
    await elapse(service, clock);
    expect([await balanceOf(network, address), await balanceIn(channel)]).toEqual([DEPOSIT, 0n]);
    const before = latch.runs();
    expect(errorOf(await pay(deposit))).toEqual(refused('channel_not_found'));
    expect(latch.runs()).toBe(before);
    expect((await service.deps.payments.ledger.countByState()).unknown).toBe(0);
  });

  test('that would need money which an open exact payment takes is refused, and costs no gas', async () => {
    const { exact, channel } = await payer();
    latch.close();
    const first = pay(await exact());
    await latch.started();
    expect(errorOf(await pay(channel.deposit(DEPOSIT, PRICE)))).toEqual(refused('insufficient_balance'));
    latch.open();
    expect((await first).status).toBe(200);
    expect(await balanceIn(channel)).toBe(0n);
  });

  test('that is open leaves no money to promise to an exact payment', async () => {
    const { address, exact, channel } = await payer();
    latch.close();
    const first = pay(channel.deposit(DEPOSIT, PRICE));
    await latch.started();
    expect(errorOf(await pay(await exact()))).toEqual([402, 'invalid_exact_evm_insufficient_balance']);
    latch.open();
    expect((await first).status).toBe(200);
    expect([await balanceOf(network, address), await balanceIn(channel)]).toEqual([0n, DEPOSIT]);
  });

  test('that reverts is answered with the scheme’s own name of the fault, also when it is presented again', async () => {
    const { address, deposit, failed } = await reverted();
    expect(errorOf(failed)).toEqual(refused('deposit_transaction_failed'));
    const reason = { success: false, errorReason: `${PREFIX}deposit_transaction_failed` };
    expect(decoded(failed, 'payment-response')).toMatchObject(reason);
    expect((await pay(deposit)).status).toBe(200);
    expect(await balanceOf(network, address)).toBe(0n);
  });

  test('that its payer has cancelled after it reverted is answered with the scheme’s own name of the fault', async () => {
    const { deposit, privateKey } = await reverted();
    const { authorization } = depositOf(deposit);
    await (await newOutsider(network)).send(cancelCalldata(network, privateKey, authorization));
    expect(errorOf(await pay(deposit))).toEqual(refused('deposit_transaction_failed'));
  });

  test('whose money a third party leaves with the collector, by a plain transfer that the payer signed too, buys nothing', async () => {
    const { address, channel, privateKey } = await payer();
    const deposit = channel.deposit(DEPOSIT, PRICE);
    const { authorization } = depositOf(deposit);
    const separator = domainSeparator('USDC', '2', network.chainId, hexToBytes(network.usdc));
    const signature = signRecoverable(authorizationDigest(authorization, separator), privateKey);
    latch.close();
    const answer = pay(deposit);
    await latch.started();
    await (await newOutsider(network)).submit({ ...authorization, signature });
    expect([await balanceOf(network, address), await balanceIn(channel)]).toEqual([0n, 0n]);
    latch.open();
    expect(errorOf(await answer)).toEqual(refused('deposit_transaction_failed'));
    expect((await pay(deposit)).status).toBe(402);
    const before = latch.runs();
    expect((await pay(channel.voucher(2n * PRICE))).status).toBe(402);
    expect(latch.runs()).toBe(before);
    expect((await service.deps.payments.ledger.countByState()).unknown).toBe(0);
  });

  test('that the payer’s own contract would revert is refused with the scheme’s own name of the fault', async () => {
    const { address, channel } = await payer();
    // Code that reverts whatever it is asked. The key's own signature stays valid.
    await network.rpc('anvil_setCode', [address, '0x60006000fd']);
    expect(errorOf(await pay(channel.deposit(DEPOSIT, PRICE)))).toEqual(refused('deposit_simulation_failed'));
    expect(await balanceIn(channel)).toBe(0n);
  });
});
