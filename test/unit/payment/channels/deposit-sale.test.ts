import { describe, expect, test } from 'vitest';
import { AppError } from '../../../../src/errors.ts';
import { bytesToHex } from '../../../../src/lib/hex.ts';
import { SETTLEMENT } from '../../../../src/payment/channels/scheme.ts';
import { AWAY, openChannelSale, PRICE } from '../../../support/channels/channel-sale.ts';

const ID = 'identifier-000001';
const DAY_MS = 86_400_000;

describe('a deposit that is sold', () => {
  test('opens its channel, pays for the call by its voucher, and is settled by the settlement contract', async () => {
    const { sell, deposit, bed, script } = await openChannelSale();
    const of = bed.fund(0n);
    const { body, receipt, at, onSent } = await sell({}, deposit(PRICE, { of }));
    expect(JSON.parse(String(body))).toEqual({ answer: 'answer 1' });
    expect(script.settledBy).toEqual([SETTLEMENT]);
    expect(receipt).toMatchObject({
      success: true,
      transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
      amount: '5000',
      payer: bytesToHex(of.config.payer),
      extra: { chargedAmount: '500', channelState: { balance: '5000', chargedCumulativeAmount: '500' } },
    });
    const sale = await bed.store.findSale(of.id, PRICE);
    expect(sale).toMatchObject({ state: 'settled', amount: 5000n, price: PRICE, deliveredAt: null, endedAt: at });
    expect(await bed.noted(of.id)).toMatchObject({ charged: PRICE, state: { balance: 5000n } });
    await onSent?.();
    expect((await bed.store.findSale(of.id, PRICE))?.deliveredAt).toBe(bed.clock.nowMs());
  });

  test('into a channel that the ledger knows writes no row of the channel again', async () => {
    const { ask, deposit, voucher, count } = await openChannelSale();
    await ask({}, voucher(PRICE));
    count('note the channel');
    expect(await ask({ tag: 'b' }, deposit(2n * PRICE))).toBe('answer 2');
    expect(count('note the channel')).toBe(0);
  });

  test('lets its channel sell the next calls for vouchers', async () => {
    const { ask, deposit, voucher, bed } = await openChannelSale();
    const of = bed.fund(0n);
    expect(await ask({}, deposit(PRICE, { of }))).toBe('answer 1');
    expect(await ask({ tag: 'b' }, voucher(2n * PRICE, { of }))).toBe('answer 2');
  });

  test('gives its answer again to the same client and request, and nothing is taken twice', async () => {
    const { ask, deposit, script, failOften, runs } = await openChannelSale({ storeBytes: 21 });
    const once = deposit(PRICE);
    await ask({}, once);
    // Also where nothing new is sold.
    [script.unavailable, script.wallet.balance] = ['no gas', 0n];
    await failOften();
    expect(await ask({ isOff: true, price: 2n * PRICE }, once)).toBe('answer 1');
    expect([runs(), script.settledBy.length]).toEqual([1, 1]);
  });

  test('is 410 once its answer is lost undelivered, with the receipt that tells the charges', async () => {
    const { ask, sell, deposit, clock, channel } = await openChannelSale();
    const once = deposit(PRICE);
    await ask({}, once);
    await clock.advance(8 * DAY_MS);
    await expect(sell({}, once)).rejects.toMatchObject({
      status: 410,
      code: 'answer_gone',
      charged: true,
      receipt: { amount: '5000', extra: { channelState: { channelId: channel.hex, chargedCumulativeAmount: '500' } } },
    });
  });

  test.each([
    ['for another request', { tag: 'b' }],
    ['by another client', { identity: 'two' }],
  ])('and is presented %s, is told the charges of its channel', async (_, call) => {
    const { ask, deposit, voucher, on, failed } = await openChannelSale();
    const once = deposit(PRICE);
    await ask({}, once);
    await ask({ tag: 'c' }, voucher(2n * PRICE));
    expect(await ask(call, once)).toBe('402 cumulative_amount_mismatch, charges: 1000');
    expect(failed).toEqual([]);
    on('read the channel', async () => null);
    expect(await ask(call, once)).toBe('402 cumulative_amount_mismatch');
    // It was paid, so what cannot be read is in doubt.
    on('read the channel', AWAY);
    expect(await ask(call, once)).toBe('503 ledger_unavailable, charged: unknown');
  });

  test('and whose answer was fetched as often as it may be, is told the charges', async () => {
    const { ask, sell, deposit } = await openChannelSale();
    const once = deposit(PRICE);
    await (await sell({}, once)).onSent?.();
    for (let again = 0; again < 5; again++) expect(await ask({}, once)).toBe('answer 1');
    expect(await ask({}, once)).toBe('402 cumulative_amount_mismatch, charges: 500');
  });
});

describe('a deposit whose settlement fails', () => {
  test.each([
    ['reverted', 'deposit_transaction_failed', 1],
    ['used elsewhere', 'deposit_transaction_failed', 1],
    ['expired', 'payload_authorization_valid_before', 1],
  ] as const)(
    'as %s is refused with the scheme’s own reason, also in the receipt',
    async (settlement, name, failures) => {
      const { sell, deposit, script, failed, noted } = await openChannelSale();
      script.settlement = settlement;
      const reason = `invalid_batch_settlement_evm_${name}`;
      const refusal = { name: 'PaymentRefused', reason, settlement: { success: false, errorReason: reason } };
      await expect(sell({}, deposit(PRICE))).rejects.toMatchObject(refusal);
      expect([failed.length, (await noted()).charged]).toEqual([failures, 0n]);
    },
  );

  test('for good is refused for that whenever it comes again, in the scheme’s words where it has any', async () => {
    const { ask, deposit, script, runs } = await openChannelSale();
    const [used, lost] = [deposit(PRICE), deposit(PRICE, { salt: 8 })];
    script.settlement = 'used elsewhere';
    for (let time = 0; time < 2; time++) expect(await ask({}, used)).toBe('402 deposit_transaction_failed');
    script.settlement = 'another reason';
    for (let time = 0; time < 2; time++) expect(await ask({}, lost)).toBe('402 lost');
    expect(runs()).toBe(2);
  });

  test('without a known end is in doubt, and is sold once that is known', async () => {
    const { ask, deposit, script, runs, row } = await openChannelSale();
    const once = deposit(PRICE);
    script.settlement = 'unknown';
    expect(await ask({}, once)).toBe('503 settlement_unknown, charged: unknown');
    // Until then its row keeps the call that settles it.
    expect([(await row())?.calldata]).toEqual(script.settledWith);
    script.settlement = 'paid';
    expect([await ask({}, once), runs()]).toEqual(['answer 1', 1]);
  });
});

describe('a deposit that reverted', () => {
  /** A world in which a deposit has reverted and its payer has not failed in this minute. */
  async function openReverted() {
    const world = await openChannelSale();
    const { ask, deposit, script, clock } = world;
    const once = deposit(PRICE, { validBefore: Math.floor(clock.nowMs() / 1000) + 700 });
    script.settlement = 'reverted';
    expect(await ask({}, once)).toBe('402 deposit_transaction_failed');
    script.settlement = 'paid';
    await clock.advance(2000);
    return { ...world, once };
  }

  test('may buy its call again, and for nobody else', async () => {
    const { ask, once, runs } = await openReverted();
    expect(await ask({ tag: 'b' }, once)).toBe('402 payment_already_used');
    expect(await ask({ identity: 'two' }, once)).toBe('402 payment_already_used');
    expect([await ask({}, once), runs()]).toEqual(['answer 2', 2]);
  });

  test('and was used elsewhere since is refused in the scheme’s words', async () => {
    const { ask, once, script } = await openReverted();
    [script.wallet.used, script.evidence] = [true, 'used elsewhere'];
    expect(await ask({}, once)).toBe('402 deposit_transaction_failed');
  });

  test('and was sent by a third party since has paid for its call, if it is in the channel, which is read again', async () => {
    const { ask, once, bed, channel, script, clock } = await openReverted();
    [script.wallet.used, script.evidence, script.wallet.balance] = [true, 'paid', 0n];
    bed.contract.put(channel.id, { balance: PRICE - 1n });
    expect(await ask({}, once)).toBe('402 cumulative_amount_mismatch, charges: 0');
    await clock.advance(2000);
    bed.contract.put(channel.id, { balance: 15_000n });
    expect(await ask({}, once)).toBe('answer 2');
  });

  test('is answered as unknown where it cannot be sold again, and where nobody knows what became of it', async () => {
    const { ask, once, script, failOften } = await openReverted();
    script.unavailable = 'no gas';
    expect(await ask({}, once)).toBe('503 settlement_unavailable, charged: unknown');
    [script.wallet.used, script.evidence] = [true, 'unknown'];
    expect(await ask({}, once)).toBe('503 settlement_unknown, charged: unknown');
    await failOften();
    expect(await ask({}, once)).toBe('429 client_failures, charged: unknown');
  });
});

describe('the deposits of a day', () => {
  test('are two of a payer whose money was not spent, and the third makes no row of a channel', async () => {
    const { ask, deposit, bed } = await openChannelSale();
    const first = bed.fund(0n);
    const channels = [first, ...[5, 6].map((salt) => bed.fund(0n, { salt: Buffer.alloc(32, salt) }, first))];
    const ends = [];
    for (const of of channels) ends.push(await ask({}, deposit(PRICE, { of })));
    expect(ends).toEqual(['answer 1', 'answer 2', '429 too_many_deposits, charged: false']);
    expect(await bed.store.get(channels[2]!.id)).toBeNull();
  });

  test('leave out those of which nothing was sent: refused ones, and those whose endpoint fails', async () => {
    const { ask, deposit, bed, script, clock } = await openChannelSale();
    const of = bed.fund(0n);
    const run = () => Promise.reject(new AppError(404, 'not_found', 'no such thing'));
    for (let salt = 1; salt <= 3; salt++)
      expect(await ask({ run }, deposit(PRICE, { of, salt }))).toBe('404 not_found, charged: false');
    await clock.advance(60_000);
    [script.wallet.hasCode, script.wouldDepositFail] = [true, true];
    for (let salt = 4; salt <= 6; salt++)
      expect(await ask({}, deposit(PRICE, { of, salt }))).toBe('402 deposit_simulation_failed');
    await clock.advance(60_000);
    script.wouldDepositFail = false;
    expect(await ask({}, deposit(PRICE, { of }))).toBe('answer 4');
    expect(await ask({ tag: 'b' }, deposit(2n * PRICE, { of, salt: 8 }))).toBe('answer 5');
    expect(await ask({ tag: 'c' }, deposit(3n * PRICE, { of, salt: 9 }))).toBe('429 too_many_deposits, charged: false');
  });
});

test('a deposit with an identifier is sold to its holder from another address, and to no other payment', async () => {
  const { ask, deposit } = await openChannelSale();
  const once = deposit(PRICE, { identifier: ID });
  await ask({}, once);
  expect(await ask({ identity: 'two' }, once)).toBe('answer 1');
  const other = deposit(2n * PRICE, { identifier: ID, salt: 8 });
  expect(await ask({ tag: 'b' }, other)).toBe('409 payment_identifier_conflict, charged: false');
});
