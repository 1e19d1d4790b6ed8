import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { untilChannelsAreOffered } from '../../support/channels/offered.ts';
import { channelEnv, newStockBuyer, receiptOf } from '../../support/channels/stock-buyer.ts';
import { createHaltingClock } from '../../support/halting-clock.ts';
import { priceOf } from '../../support/prices.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { balanceOf } from '../../support/usdc/buyer.ts';

const PATH = '/v1/paid/fees/estimate';
/** 0.1 USDC. */
const DEPOSIT = 100_000n;

const clock = createHaltingClock();
let network: EmbeddedNetwork;
let service: Service;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
  service = await startService(network, { env: channelEnv('0.1'), clock });
  await untilChannelsAreOffered(service.origin + PATH);
});
afterAll(async () => {
  await service?.stop();
  await network.stop();
});

test('the stock client deposits once and then buys with vouchers alone', async () => {
  const { address, open } = await newStockBuyer(network);
  const { pay } = open();
  const before = await balanceOf(network, address);
  const first = await pay(service.origin + PATH);
  expect(first.status).toBe(200);
  const receipt = receiptOf(first);
  expect(receipt).toMatchObject({ success: true, amount: String(DEPOSIT) });
  expect(receipt.transaction).toMatch(/^0x[0-9a-f]{64}$/);
  expect(before - (await balanceOf(network, address))).toBe(DEPOSIT);
  const price = BigInt(receipt.extra.chargedAmount);
  for (let call = 2n; call <= 20n; call++) {
    const answer = await pay(service.origin + PATH);
    expect(answer.status).toBe(200);
    const { transaction, extra } = receiptOf(answer);
    expect(transaction).toBe('');
    expect(extra.channelState.chargedCumulativeAmount).toBe(String(call * price));
  }
  expect(before - (await balanceOf(network, address))).toBe(DEPOSIT);
});

test('ten parallel calls of one stock client are all served, and each is charged once', async () => {
  const { open } = await newStockBuyer(network);
  const { pay } = open();
  const first = await pay(service.origin + PATH);
  const price = BigInt(receiptOf(first).extra.chargedAmount);
  const wallets = Array.from({ length: 10 }, (_, at) => `/v1/paid/chain/wallet?address=0x${String(at).repeat(40)}`);
  // The channel waits half a second for a corrected client to sign again. Here no time passes meanwhile, so that a busy machine is not too late.
  const answers = await clock.whileHalted(() => Promise.all(wallets.map((path) => pay(service.origin + path))));
  expect(answers.map(({ status }) => status)).toEqual(wallets.map(() => 200));
  const charged = answers.map((answer) => BigInt(receiptOf(answer).extra.chargedAmount));
  const last = await pay(service.origin + PATH);
  const sum = charged.reduce((all, one) => all + one, 2n * price);
  expect(BigInt(receiptOf(last).extra.channelState.chargedCumulativeAmount)).toBe(sum);
});

test('a client that lost its store is told the charges, and goes on with the channel without a second deposit', async () => {
  const { open, address } = await newStockBuyer(network);
  const before = await balanceOf(network, address);
  const [one, other] = [open(), open()];
  expect((await one.pay(service.origin + PATH)).status).toBe(200);
  expect((await one.pay(service.origin + PATH)).status).toBe(200);
  const answer = await other.pay(`${service.origin + PATH}?gas=30000`);
  expect(answer.status).toBe(200);
  expect(other.seen.map(({ status }) => status)).toEqual([402, 402, 200]);
  expect(receiptOf(answer).extra.channelState.chargedCumulativeAmount).toBe(String(3n * priceOf(PATH).units));
  expect(before - (await balanceOf(network, address))).toBe(DEPOSIT);
});

test('a refund gives the payer back what is left, in one call', async () => {
  const { open, address } = await newStockBuyer(network);
  const { pay, scheme } = open();
  const before = await balanceOf(network, address);
  const first = await pay(service.origin + PATH);
  expect((await pay(service.origin + PATH)).status).toBe(200);
  const price = BigInt(receiptOf(first).extra.chargedAmount);
  const refunded = await scheme.refund(service.origin + PATH);
  expect(refunded).toMatchObject({ success: true, amount: String(DEPOSIT - 2n * price) });
  expect(before - (await balanceOf(network, address))).toBe(2n * price);
});
