import { describe, expect, test } from 'vitest';
import { AppError } from '../../../../src/errors.ts';
import { bytesToHex } from '../../../../src/lib/hex.ts';
import { signRecoverable } from '../../../../src/lib/secp256k1.ts';
import { createWallet } from '../../../../src/payment/relayer/transactions.ts';
import { CHANNEL_TERMS, scheme } from '../../../support/channels/channel-payment.ts';
import { openChannelSale, PRICE } from '../../../support/channels/channel-sale.ts';
import { createPause } from '../../../support/channels/ledger-steps.ts';
import { NETWORK } from '../../../support/ledger/channel-rows.ts';
import { SOURCES_OF } from '../../../support/payment/call.ts';

const ID = 'identifier-000001';
const STALE = (charges: bigint) => `402 cumulative_amount_mismatch, charges: ${charges}`;

describe('a voucher that is sold', () => {
  test('is a settled row with the route, the price and the recipient, and its receipt tells the charges', async () => {
    const { sell, voucher, channel, row, noted, clock } = await openChannelSale();
    const { receipt, at, onSent } = await sell({}, voucher(PRICE));
    expect(receipt).toMatchObject({ success: true, transaction: '', amount: '', extra: { chargedAmount: '500' } });
    expect(receipt.extra).toMatchObject({ channelState: { chargedCumulativeAmount: '500' } });
    const sale = await row();
    expect(sale).toMatchObject({ state: 'settled', network: NETWORK, amount: PRICE, price: PRICE, protocol: 'x402' });
    expect(sale).toMatchObject({ deliveredAt: null, validAfter: 0n, validBefore: 0n, endedAt: at });
    expect(bytesToHex(sale!.payTo)).toBe(bytesToHex(CHANNEL_TERMS.receiver));
    expect(bytesToHex(sale!.payer)).toBe(bytesToHex(channel.config.payer));
    await onSent?.();
    expect((await row())?.deliveredAt).toBe(clock.nowMs());
    const signed = signRecoverable(scheme.voucherDigest(channel.id, PRICE), channel.privateKey);
    expect(Buffer.from((await noted()).signature!)).toEqual(Buffer.from(signed));
  });

  test('runs its endpoint with the sources of sales, which come first at the chain', async () => {
    const { ask, voucher } = await openChannelSale();
    const ranWith: unknown[] = [];
    await ask({ run: async (sources) => void ranWith.push(sources) }, voucher(PRICE));
    expect(ranWith).toEqual([SOURCES_OF.sale]);
  });

  test('has a key of its own for each voucher of one payer, and a hash of the whole voucher', async () => {
    const { ask, voucher, row } = await openChannelSale();
    await ask({}, voucher(PRICE));
    await ask({ tag: 'b' }, voucher(2n * PRICE));
    const [first, second] = [await row(), await row(2n * PRICE)];
    expect(bytesToHex(first!.nonce)).not.toBe(bytesToHex(second!.nonce));
    expect(bytesToHex(first!.authorizationHash!)).not.toBe(bytesToHex(second!.authorizationHash!));
    expect(first!.authorizationHash).toHaveLength(32);
  });
});

describe('the reads of a sale', () => {
  test('leave out an earlier sale of a voucher over more than what is charged', async () => {
    const { ask, voucher, count } = await openChannelSale();
    await ask({}, voucher(PRICE));
    count('find the sale');
    for (let call = 2n; call <= 5n; call++) expect(await ask({}, voucher(call * PRICE))).toBe(`answer ${call}`);
    expect(count('find the sale')).toBe(0);
  });

  test('are one of the channel, and two more where a request waited for its like', async () => {
    const { ask, voucher, count, runs } = await openChannelSale();
    await ask({}, voucher(PRICE));
    count('read the channel');
    await ask({}, voucher(2n * PRICE));
    expect(count('read the channel')).toBe(1);
    await Promise.all([ask({}, voucher(3n * PRICE)), ask({}, voucher(3n * PRICE))]);
    // The second request reads it before it waits, and in its turn. There it finds the first one's answer.
    expect([count('read the channel'), runs()]).toEqual([3, 3]);
  });

  test('are made again when another sale ended after the first one', async () => {
    const { ask, voucher, on, runs } = await openChannelSale();
    await ask({}, voucher(PRICE));
    const slow = createPause();
    on('read the channel', async (go, nth) => {
      const row = await go();
      if (nth === 1) await slow.pause();
      return row;
    });
    const late = ask({}, voucher(2n * PRICE));
    await slow.reached;
    const answer = await ask({}, voucher(2n * PRICE));
    slow.go();
    expect([await late, runs()]).toEqual([answer, 2]);
  });

  test.each([
    ['with an identifier, because the look for that may have taken long', 2n, { identifier: ID }],
    ['that may have bought before, because the look for its sale may have', 1n, {}],
  ])('are two for a voucher %s', async (_, calls, more) => {
    const { ask, voucher, count } = await openChannelSale();
    await ask({}, voucher(PRICE));
    count('read the channel');
    await ask({ tag: 'b' }, voucher(calls * PRICE, more));
    expect(count('read the channel')).toBe(2);
  });
});

describe('an answer that is bought', () => {
  test('comes again for the same voucher and request, with the receipt of its sale, and nothing runs', async () => {
    const { ask, sell, voucher, runs } = await openChannelSale();
    const vouchers = [PRICE, 2n * PRICE, PRICE, 2n * PRICE].map((max) => voucher(max));
    const answers: string[] = [];
    for (const one of vouchers) answers.push(await ask({}, one));
    expect([answers, runs()]).toEqual([['answer 1', 'answer 2', 'answer 1', 'answer 2'], 2]);
    const { receipt } = await sell({}, voucher(PRICE));
    expect(receipt.extra).toMatchObject({ chargedAmount: '500', channelState: { chargedCumulativeAmount: '500' } });
  });

  test('is one for a voucher that is presented often at once', async () => {
    const { ask, voucher, runs } = await openChannelSale();
    await ask({}, voucher(PRICE));
    const answers = await Promise.all(Array.from({ length: 6 }, () => ask({}, voucher(2n * PRICE))));
    expect([new Set(answers), runs()]).toEqual([new Set(['answer 2']), 2]);
  });

  test('at another process comes from here too, although this one knows of lower charges', async () => {
    const { ask, voucher, another, runs } = await openChannelSale();
    await ask({}, voucher(PRICE));
    const bought = await (await another()).ask({}, voucher(2n * PRICE));
    expect([await ask({}, voucher(2n * PRICE)), runs()]).toEqual([bought, 2]);
  });

  test('of two processes at once is charged once, and both give the same bytes', async () => {
    const { ask, voucher, another, noted } = await openChannelSale();
    const other = await another();
    await ask({}, voucher(PRICE));
    const answers = await Promise.all([ask({}, voucher(2n * PRICE)), other.ask({}, voucher(2n * PRICE))]);
    expect(answers[0]).toBe(answers[1]);
    expect((await noted()).charged).toBe(2n * PRICE);
  });

  test('comes to the same client only, unless another one has the payment identifier, and for no other request', async () => {
    const { ask, voucher, clock, runs } = await openChannelSale();
    await ask({}, voucher(PRICE));
    await ask({ tag: 'b' }, voucher(2n * PRICE, { identifier: ID }));
    expect(await ask({ identity: 'two' }, voucher(PRICE))).toBe(STALE(1000n));
    await clock.advance(500);
    expect(await ask({ tag: 'b' }, voucher(PRICE))).toBe(STALE(1000n));
    expect(await ask({}, voucher(PRICE))).toBe('answer 1');
    expect(await ask({ tag: 'b', identity: 'two' }, voucher(2n * PRICE, { identifier: ID }))).toBe('answer 2');
    expect(runs()).toBe(2);
  });

  test.each([undefined, ID])(
    'comes five times; then its voucher is told the charges; with identifier %s',
    async (identifier) => {
      const { ask, sell, voucher, runs } = await openChannelSale();
      await (await sell({}, voucher(PRICE, { identifier }))).onSent?.();
      for (let again = 0; again < 5; again++) expect(await ask({}, voucher(PRICE, { identifier }))).toBe('answer 1');
      expect([await ask({}, voucher(PRICE, { identifier })), runs()]).toEqual([STALE(500n), 1]);
    },
  );

  test.each([undefined, ID])(
    'is 410 once it is lost undelivered, and tells the charges; with identifier %s',
    async (identifier) => {
      const { ask, sell, voucher, clock, runs } = await openChannelSale();
      await ask({}, voucher(PRICE, { identifier }));
      await clock.advance(8 * 86_400_000);
      // The client does not pay again, and learns the charges from the receipt.
      await expect(sell({}, voucher(PRICE, { identifier }))).rejects.toMatchObject({
        status: 410,
        code: 'answer_gone',
        charged: true,
        receipt: { success: true, extra: { channelState: { chargedCumulativeAmount: '500' } } },
      });
      expect(runs()).toBe(1);
    },
  );

  test('is given out again where nothing new is sold: to a client that must wait, while sales stop, from a full store, and of an endpoint that is off', async () => {
    const { ask, voucher, script, failOften, runs } = await openChannelSale({ storeBytes: 21 });
    expect(await ask({}, voucher(PRICE))).toBe('answer 1');
    expect(await ask({}, voucher(2n * PRICE))).toBe('503 reply_store_full, charged: false');
    await failOften();
    script.stopsSales = '1 of 3 RPC providers can confirm a payment, 2 must';
    expect(await ask({ isOff: true }, voucher(PRICE))).toBe('answer 1');
    expect(runs()).toBe(1);
  });
});

describe('a stale voucher', () => {
  test('that comes again after its correction gets the receipt of the sale that it missed', async () => {
    const { ask, sell, voucher, clock } = await openChannelSale();
    await ask({}, voucher(PRICE));
    await expect(sell({ tag: 'b' }, voucher(PRICE))).rejects.toMatchObject({ settlement: null });
    await clock.advance(500);
    await expect(sell({ tag: 'b' }, voucher(PRICE))).rejects.toMatchObject({
      settlement: { success: true, transaction: '', extra: { chargedAmount: '500' } },
      correction: { isForgiven: true, extra: { channelState: { chargedCumulativeAmount: '500' } } },
    });
  });

  test('hears in that refusal, too, that it is below what a claim has recorded since', async () => {
    const { ask, sell, voucher, see, on, clock } = await openChannelSale();
    await ask({}, voucher(PRICE));
    await expect(sell({ tag: 'b' }, voucher(PRICE))).rejects.toMatchObject({ settlement: null });
    await clock.advance(500);
    // The claim is read between the first read of the channel and the turn: before that, no turn is taken.
    on('read the channel', async (go, nth) => {
      const row = await go();
      if (nth === 1) await see({ totalClaimed: PRICE });
      return row;
    });
    await expect(sell({ tag: 'b' }, voucher(PRICE))).rejects.toMatchObject({
      reason: 'invalid_batch_settlement_evm_cumulative_below_claimed',
      settlement: { success: true, extra: { chargedAmount: '500' } },
      correction: { extra: { channelState: { chargedCumulativeAmount: '500' } } },
    });
  });

  test('that was presented often at once, that is another one, or that has bought nothing gets no such receipt', async () => {
    const { ask, sell, voucher, clock } = await openChannelSale();
    for (const call of [1n, 2n, 3n]) await ask({}, voucher(call * PRICE));
    /** Whether the refusal holds a receipt. */
    const present = (max: bigint) =>
      sell({ tag: 'b' }, voucher(max)).catch(({ settlement }: { settlement: unknown }) => settlement !== null);
    const [first, second] = [present(PRICE), present(PRICE)];
    expect(await first).toBe(false);
    await clock.advance(500);
    expect(await second).toBe(false);
    for (const [max, hasReceipt] of [
      [2n * PRICE, false],
      [2n * PRICE, true],
      [PRICE + 1n, false],
      [PRICE + 1n, false],
    ] as const) {
      await clock.advance(500);
      expect(await present(max)).toBe(hasReceipt);
    }
  });

  test('that another client had presented gets its first correction, without a receipt: its client tries again', async () => {
    const { ask, sell, voucher, clock } = await openChannelSale();
    await ask({}, voucher(PRICE));
    // Claims publish vouchers, and a correction repeats the last one.
    expect(await ask({ tag: 'b', client: '10.6.6.6' }, voucher(PRICE))).toBe(STALE(500n));
    await clock.advance(500);
    await expect(sell({ tag: 'b' }, voucher(PRICE))).rejects.toMatchObject({ settlement: null });
    await clock.advance(500);
    await expect(sell({ tag: 'b' }, voucher(PRICE))).rejects.toMatchObject({ settlement: { success: true } });
  });

  test('whose sale the ledger does not show as settled gets no receipt', async () => {
    const { ask, sell, voucher, on, clock } = await openChannelSale();
    await ask({}, voucher(PRICE));
    on('find the sale', async (go) => ({ ...((await go()) as object), state: 'unknown' }));
    for (let time = 0; time < 2; time++) {
      await expect(sell({ tag: 'b' }, voucher(PRICE))).rejects.toMatchObject({ settlement: null });
      await clock.advance(500);
    }
  });

  test('holds the channel for half a second for the corrected request, which passes at once', async () => {
    const { ask, voucher, clock, waiting } = await openChannelSale();
    await ask({}, voucher(PRICE));
    expect(await ask({ tag: 'b' }, voucher(PRICE))).toBe(STALE(500n));
    const other = ask({ tag: 'c' }, voucher(2n * PRICE));
    await expect.poll(waiting).toBe(1);
    expect(await ask({ tag: 'b' }, voucher(2n * PRICE))).toBe('answer 2');
    expect(waiting()).toBe(0);
    expect(await other).toBe(STALE(1000n));
    const next = ask({ tag: 'd' }, voucher(3n * PRICE));
    await expect.poll(waiting).toBe(1);
    await clock.advance(499);
    expect(waiting()).toBe(1);
    await clock.advance(1);
    expect(await next).toBe('answer 3');
  });

  test.each([
    ['runs nothing where another process has charged its voucher', 2n * PRICE],
    ['is told the charges of now', PRICE],
  ])('of another client waits meanwhile, and %s', async (_, max) => {
    const { ask, voucher, another, clock, waiting, runs } = await openChannelSale();
    const other = await another();
    await ask({ tag: 'earlier' }, voucher(PRICE));
    expect(await ask({ tag: 'corrected' }, voucher(PRICE))).toBe(STALE(500n));
    const late = ask({ tag: 'waiting' }, voucher(max));
    await expect.poll(waiting).toBe(1);
    await other.ask({ tag: 'corrected' }, voucher(2n * PRICE));
    await clock.advance(500);
    expect([await late, runs()]).toEqual([STALE(1000n), 2]);
  });
});

test('a voucher whose endpoint fails is charged nothing, does not hold its channel, and buys the next answer', async () => {
  const { ask, voucher, noted } = await openChannelSale();
  const run = () => Promise.reject(new AppError(404, 'not_found', 'no such thing'));
  expect(await ask({ run }, voucher(PRICE))).toBe('404 not_found, charged: false');
  expect((await noted()).charged).toBe(0n);
  expect(await ask({ tag: 'b' }, voucher(PRICE))).toBe('answer 2');
});

test('the money of a channel is read again before a voucher is refused for it, and a deposit since then is seen', async () => {
  const { ask, voucher, bed, channel } = await openChannelSale();
  for (let call = 1n; call <= 20n; call++) await ask({ tag: `${call}` }, voucher(call * PRICE));
  await bed.clock.advance(2000);
  bed.contract.put(channel.id, { balance: 20_000n });
  expect(await ask({ tag: 'more' }, voucher(21n * PRICE))).toBe('answer 21');
});

describe('what vouchers have charged', () => {
  const relayer = createWallet(`0x${'1'.repeat(64)}`, 5042);
  test.each([
    ['our relayer', relayer, relayer.address],
    ['the seller, where no relayer is configured', undefined, bytesToHex(CHANNEL_TERMS.receiver)],
  ])(
    'is claimed on command by the process that settles, and tried out first as sent by %s',
    async (_, wallet, from) => {
      const { ask, voucher, claimAll, another, bed } = await openChannelSale(wallet ? { wallet } : {});
      expect(await ask({}, voucher(PRICE))).toBe('answer 1');
      const elsewhere = await another(false);
      await expect(elsewhere.claimAll()).rejects.toThrow('this process does not settle');
      bed.contract.asked.length = 0;
      expect(await claimAll()).toEqual({ claimed: PRICE, writtenOff: 0n, setAside: 0 });
      const senders = bed.contract.asked.flatMap(({ params }) => (params[0] as { from?: string }).from ?? []);
      expect(new Set(senders)).toEqual(new Set([from]));
    },
  );
});
