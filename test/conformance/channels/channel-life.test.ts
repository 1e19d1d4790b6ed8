import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { hexToBytes } from '../../../src/lib/hex.ts';
import { blockWithSuccessor, eventsOf, sellerOnChain } from '../../support/channels/chain-view.ts';
import { channelOnChain } from '../../support/channels/channel-reads.ts';
import { untilChannelsAreOffered } from '../../support/channels/offered.ts';
import { channelEnv, newStockBuyer, receiptOf, type ShownChannel } from '../../support/channels/stock-buyer.ts';
import { priceOf } from '../../support/prices.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { until } from '../../support/service/workers.ts';
import { balanceOf } from '../../support/usdc/buyer.ts';

// The unmodified client of @x402/evm through the life of a channel.

const PRICE = priceOf('/fees/estimate').units;
/** The calls that a deposit covers. */
const COVERED = process.env.SLOW ? 200 : 60;
const DEPOSIT = BigInt(COVERED) * PRICE;

let network: EmbeddedNetwork;
let service: Service;
let url: string;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
  // Claims happen in the middle of the buying.
  const env = {
    ...channelEnv(String(Number(DEPOSIT) / 1e6)),
    CHANNELS_CLAIM_FROM_USDC: '0.01',
    CHANNELS_CLAIM_AFTER_SECONDS: '1',
  };
  service = await startService(network, { env });
  url = `${service.origin}/v1/paid/fees/estimate`;
  await untilChannelsAreOffered(url);
});
afterAll(async () => {
  await service?.stop();
  await network?.stop();
});

/** A call that no other one equals. The same voucher for the same call would bring the same answer again. */
let calls = 0;
const nextCall = (): string => `${url}?gas=${21_000 + ++calls}`;
const onChain = ({ channelId }: ShownChannel) => channelOnChain(network, hexToBytes(channelId as `0x${string}`));
const sumOf = (amounts: readonly bigint[]): bigint => amounts.reduce((sum, amount) => sum + amount, 0n);

/** What the seller has, and what the contract has claimed for it of all channels and not paid out, at one block. */
async function sellersMoney() {
  const block = await blockWithSuccessor(network);
  const { claimed, unpaid } = await sellerOnChain(network, block);
  return { balance: await balanceOf(network, network.seller, block), claimed, unpaid };
}

test(`the stock client makes ${COVERED + 1} calls in one channel, tops it up by itself, and every call is charged and claimed to the unit`, async () => {
  const buyer = await newStockBuyer(network);
  const { pay, seen } = buyer.open();
  const before = await sellersMoney();
  for (let call = 0; call <= COVERED; call++) expect((await pay(nextCall())).status).toBe(200);
  const receipts = seen.flatMap(({ receipt }) => receipt ?? []);
  // The client asks without a payment first, and is never corrected.
  expect([seen.length, receipts.length]).toEqual([2 * (COVERED + 1), COVERED + 1]);
  expect(receipts.map(({ extra }) => extra.chargedAmount)).toEqual(receipts.map(() => String(PRICE)));
  const charges = receipts.map(({ extra }) => BigInt(extra.channelState.chargedCumulativeAmount));
  expect(charges).toEqual(receipts.map((_, at) => BigInt(at + 1) * PRICE));
  // The first deposit covers all calls but the last, which brings another one into the same channel.
  const deposits = receipts.flatMap(({ transaction, amount }, at) => (transaction === '' ? [] : [[at, amount]]));
  expect(deposits).toEqual([0, COVERED].map((at) => [at, String(DEPOSIT)]));
  const [channel] = receipts.map(({ extra }) => extra.channelState);
  if (!channel) throw new Error('no receipt');
  expect(new Set(receipts.map(({ extra }) => extra.channelState.channelId))).toEqual(new Set([channel.channelId]));
  expect(await eventsOf(network, 'Deposited', channel.channelId)).toEqual([DEPOSIT, DEPOSIT]);
  await until('all calls are claimed', async () => (await onChain(channel)).claimed === DEPOSIT + PRICE);
  expect((await onChain(channel)).balance).toBe(2n * DEPOSIT);
  // The channels of other tests may be claimed meanwhile. The contract pays out all that it claims.
  const { balance, claimed, unpaid } = await sellersMoney();
  expect([balance - before.balance, unpaid, before.unpaid]).toEqual([claimed - before.claimed, 0n, 0n]);
  expect(claimed - before.claimed).toBeGreaterThanOrEqual(DEPOSIT + PRICE);
  expect(await balanceOf(network, buyer.address)).toBe(1_000_000n - 2n * DEPOSIT);
});

test('two devices with one channel take turns and buy at once; each call is charged once, and both know the charges', async () => {
  const buyer = await newStockBuyer(network);
  const [one, other] = [buyer.open(), buyer.open()];
  for (const { pay } of [one, other, one, one, other]) expect((await pay(nextCall())).status).toBe(200);
  const together = await Promise.all([one, other, one, other].map(({ pay }) => pay(nextCall())));
  // The channel waits half a second for a device that was corrected. On a slow machine a device may come too late; then it is refused and not charged.
  const sold = together.filter(({ status }) => status === 200).length;
  expect(sold).toBeGreaterThan(0);
  expect(together.filter(({ status }) => status === 402).length).toBe(4 - sold);
  for (const [at, { pay }] of [one, other].entries()) {
    const { channelState } = receiptOf(await pay(nextCall())).extra;
    expect(channelState.chargedCumulativeAmount).toBe(String(BigInt(6 + sold + at) * PRICE));
    expect(await eventsOf(network, 'Deposited', channelState.channelId)).toEqual([DEPOSIT]);
  }
});

test('two devices that open one channel at once pay once for each answer, and every deposit is in the channel', async () => {
  const buyer = await newStockBuyer(network);
  const devices = [buyer.open(), buyer.open()];
  const answers = await Promise.all(devices.map(({ pay }) => pay(nextCall())));
  const sold = answers.filter(({ status }) => status === 200).length;
  expect(sold).toBeGreaterThan(0);
  // A device that was refused buys its call now, without a deposit of its own.
  for (const { pay } of devices) expect((await pay(nextCall())).status).toBe(200);
  const last = devices[1]?.seen.at(-1)?.receipt?.extra.channelState;
  if (!last) throw new Error('no receipt');
  expect(last.chargedCumulativeAmount).toBe(String(BigInt(sold + 2) * PRICE));
  const deposited = sumOf(await eventsOf(network, 'Deposited', last.channelId));
  expect((await onChain(last)).balance).toBe(deposited);
  expect(await balanceOf(network, buyer.address)).toBe(1_000_000n - deposited);
});

test('a client that lost an answer gets it by the same call and is charged once, or goes on with another call', async () => {
  const buyer = await newStockBuyer(network);
  const { pay, loseNext } = buyer.open();
  expect((await pay(nextCall())).status).toBe(200);
  const lost = nextCall();
  loseNext();
  await expect(pay(lost)).rejects.toThrow('the answer is lost');
  const [again, other] = [await pay(lost), await pay(nextCall())];
  const charges = [again, other].map((answer) => receiptOf(answer).extra.channelState.chargedCumulativeAmount);
  expect(charges).toEqual([2n, 3n].map((count) => String(count * PRICE)));
  loseNext();
  await expect(pay(nextCall())).rejects.toThrow('the answer is lost');
  const last = receiptOf(await pay(nextCall()));
  expect(last.extra.channelState.chargedCumulativeAmount).toBe(String(5n * PRICE));
});

test('a client that cannot read the chain and lost an answer is told its charges by its second call, and goes on', async () => {
  const buyer = await newStockBuyer(network);
  const { pay, loseNext } = buyer.open({ reads: false });
  expect((await pay(nextCall())).status).toBe(200);
  loseNext();
  await expect(pay(nextCall())).rejects.toThrow('the answer is lost');
  const statuses: number[] = [];
  for (let call = 0; call < 3; call++) statuses.push((await pay(nextCall())).status);
  expect(statuses).toEqual([402, 402, 200]);
  const last = receiptOf(await pay(nextCall()));
  expect(last.extra.channelState.chargedCumulativeAmount).toBe(String(4n * PRICE));
});
