import { describe, expect, test } from 'vitest';
import { TooMany, Unavailable } from '../../../../src/errors.ts';
import { PaymentRefused } from '../../../../src/payment/refusal.ts';
import type { Authorization } from '../../../../src/payment/settler.ts';
import {
  CHAIN_AWAY,
  CLIENT,
  LACKS_MONEY,
  NONCE_USED,
  openSale,
  type Standing,
  storeFails,
} from '../../../support/payment/sale-world.ts';

const OTHER = '192.0.2.2';
const USED = { name: 'PaymentRefused', reason: 'payment_already_used' };
const SOLD = { answer: { tag: 'none', run: 1 } };

describe('the same payment', () => {
  test.each(['reserved', 'settling'] as const)(
    'is in flight while it is %s: it may be taken at any moment',
    async (state) => {
      const { sell, row, paymentThatIs } = openSale();
      const { payment, first, go } = await paymentThatIs(state);
      expect((await row(payment))?.state).toBe(state);
      const inFlight = { status: 409, code: 'payment_in_flight', charged: 'unknown', retryAfterSeconds: 1 };
      expect(await sell({}, payment)).toMatchObject(inFlight);
      go();
      expect(await first).toMatchObject(SOLD);
    },
  );

  test('buys nothing for another request once it has paid', async () => {
    const { sell, latch, paymentThatIs } = openSale();
    const { payment } = await paymentThatIs('settled');
    expect(await sell({ query: { tag: 'another' } }, payment)).toMatchObject(USED);
    expect(latch.runs()).toBe(1);
  });

  test('is answered where its settlement failed with the reason, in the challenge and in PAYMENT-RESPONSE', async () => {
    const { sell, latch, rewrite, paymentThatIs } = openSale();
    const { payment, first } = await paymentThatIs('failed');
    const payer = `0x${Buffer.from(payment.authorization.from).toString('hex')}`;
    const settlement = { success: false, payer, transaction: '', network: 'eip155:5042' };
    for (const refusal of [await first, await sell({}, payment)]) {
      expect(refusal).toBeInstanceOf(PaymentRefused);
      expect(refusal.reason).toBe(NONCE_USED.reason);
      expect(refusal.settlement).toEqual({ ...settlement, errorReason: NONCE_USED.reason });
    }
    // A row without a reason has x402's own word for that.
    rewrite('reason = NULL');
    expect(await sell({}, payment)).toMatchObject({ reason: 'unexpected_settle_error' });
    expect(latch.runs()).toBe(1);
  });

  test('has its answer as often as that is kept; then it is gone where it was never delivered, else used', async () => {
    const { sell, paymentThatIs, clock } = openSale();
    const { payment, first } = await paymentThatIs('settled');
    for (let at = 0; at < 5; at++) expect(await sell({}, payment)).toMatchObject(SOLD);
    expect(await sell({}, payment)).toMatchObject({ status: 410, code: 'answer_gone', charged: true });
    await (await first).onSent?.();
    expect(await sell({}, payment)).toMatchObject(USED);
    const late = await paymentThatIs('settled');
    await (await late.first).onSent?.();
    await clock.advance(900_001);
    expect(await sell({}, late.payment)).toMatchObject(USED);
  });

  test('whose answer cannot be read has an unknown outcome', async () => {
    const { sell, store, paymentThatIs } = openSale();
    const { payment } = await paymentThatIs('settled');
    store.takeReply = storeFails();
    expect(await sell({}, payment)).toMatchObject({ status: 503, code: 'settlement_unknown', charged: 'unknown' });
  });
});

describe('the same buyer', () => {
  const identifier = 'order-0123456789abcdef';
  const [same, moved] = [{}, { client: OTHER }];

  test.each<[whom: string, now: object, then: string, presented: string, isBuyer: boolean]>([
    ['by its address', same, '', '', true],
    ['by its address, although it has an identifier now', same, '', identifier, true],
    ['by its address, although it has no identifier now', same, identifier, '', true],
    ['by what it proves to be, from any address', { client: OTHER, identity: CLIENT }, '', '', true],
    ['by its identifier, from any address', moved, identifier, identifier, true],
    ['not by another address', moved, '', '', false],
    ['not by a shared address, where it proves to be another', { identity: OTHER }, '', '', false],
    ['not by an identifier that only the row has', moved, identifier, '', false],
    ['not by an identifier that the row lacks', moved, '', identifier, false],
    ['not by another identifier', moved, identifier, 'order-fedcba9876543210', false],
  ])('is recognised %s', async (_, call, then, presented, isBuyer) => {
    const { sell, sign, paymentThatIs } = openSale();
    const { payment } = await paymentThatIs('settled', {}, sign({ identifier: then }));
    const again = sign({ like: payment, identifier: presented });
    expect(await sell(call, again)).toMatchObject(isBuyer ? SOLD : USED);
  });

  test.each<[whom: string, protocol: string, now: object, identifier: string, isBuyer: boolean]>([
    ['not by its address in another protocol', "'mpp'", same, '', false],
    ['by its address in a row from before protocols were kept', 'NULL', same, '', true],
    ['by its identifier in any protocol', "'mpp'", moved, identifier, true],
  ])('is recognised %s', async (_, protocol, call, name, isBuyer) => {
    const { sell, sign, rewrite, paymentThatIs } = openSale();
    const { payment } = await paymentThatIs('settled', {}, sign({ identifier: name }));
    rewrite(`protocol = ${protocol}`);
    expect(await sell(call, payment)).toMatchObject(isBuyer ? SOLD : USED);
  });
});

describe('the same key with other content', () => {
  const STATES = ['reserved', 'settling', 'unknown', 'settled', 'reverted', 'failed'] as const satisfies Standing[];
  test.each(STATES)('is used, while the first is %s', async (state) => {
    const { sell, sign, row, asked, paymentThatIs } = openSale();
    const { payment, go } = await paymentThatIs(state);
    const before = (await row(payment))?.state;
    asked.length = 0;
    const change = { validBefore: payment.authorization.validBefore + 1n };
    expect(await sell({}, sign({ like: payment, change }))).toMatchObject(USED);
    expect(await sell({}, sign({ like: payment, change: { signature: Buffer.alloc(65, 1) } }))).toMatchObject(USED);
    expect([asked, (await row(payment))?.state]).toEqual([['row', 'row'], before]);
    go();
  });

  type Change = (of: Authorization) => Partial<Authorization>;
  test.each<[string, Change, boolean]>([
    ['whatever the signature', () => ({ signature: Buffer.alloc(65, 1) }), true],
    ['unless its amount is another', ({ value }) => ({ value: value + 1n }), false],
    ['unless its recipient is another', () => ({ to: Buffer.alloc(20, 4) }), false],
    ['unless its beginning is another', ({ validAfter }) => ({ validAfter: validAfter + 1n }), false],
    ['unless its end is another', ({ validBefore }) => ({ validBefore: validBefore - 1n }), false],
  ])('is the same payment in a row from before payments were hashed, %s', async (_, change, isSame) => {
    const { sell, sign, rewrite, paymentThatIs } = openSale();
    const { payment } = await paymentThatIs('settled');
    rewrite('authorization_hash = NULL');
    const again = sign({ like: payment, change: change(payment.authorization) });
    expect(await sell({}, again)).toMatchObject(isSame ? SOLD : USED);
  });
});

describe('a payment that is presented on two connections', () => {
  const CHANGES = [
    null,
    NONCE_USED,
    LACKS_MONEY,
    CHAIN_AWAY,
    new TooMany('payer_short_of_funds', 'the balance was too low a moment ago', 3),
    new Unavailable('chain_busy', 'the chain cannot be read now'),
  ];
  test.each(CHANGES)(
    'is sold once and answered on both, whatever the chain shows the slower one: %s',
    async (fault) => {
      const { sell, sign, hold, latch, failures, asked } = openSale();
      const payment = sign();
      const { arrived, go } = hold('payer', fault);
      const slow = sell({}, payment);
      await arrived;
      expect(await sell({}, payment)).toMatchObject(SOLD);
      go();
      expect(await slow).toMatchObject(SOLD);
      expect([latch.runs(), failures.hasFailed(CLIENT)]).toEqual([1, false]);
      // A payment that the checks refuse causes no durable write.
      expect(asked.filter((step) => step === 'reserve')).toHaveLength(fault ? 1 : 2);
    },
  );

  test('has its answer, although nothing can be settled by the time that its identifier is read', async () => {
    const { sell, sign, says, store } = openSale();
    const payment = sign({ identifier: 'order-one-of-this-test' });
    const { findByIdentifier } = store;
    store.findByIdentifier = async (hash) => {
      store.findByIdentifier = findByIdentifier;
      expect(await sell({ client: OTHER }, payment)).toMatchObject(SOLD);
      says.shortage = 'the chain is away';
      return findByIdentifier(hash);
    };
    expect(await sell({}, payment)).toMatchObject(SOLD);
  });

  test('has its answer, although its payer had not paid before when that was read', async () => {
    const { sell, sign, store, failures } = openSale();
    const payment = sign({ identifier: 'order-two-of-this-test' });
    failures.beginSettlement('some payer', CLIENT)(true);
    store.hasSettled = async () => {
      expect(await sell({ client: OTHER }, payment)).toMatchObject(SOLD);
      return false;
    };
    expect(await sell({}, payment)).toMatchObject(SOLD);
  });

  test('is not reused unseen where the faster one reverted, nor said to have cost nothing', async () => {
    const { sell, row, sign, hold, latch, paymentThatIs } = openSale();
    const payment = sign();
    const { arrived, go } = hold('payer');
    const slow = sell({}, payment);
    await arrived;
    await paymentThatIs('reverted', {}, payment);
    go();
    expect(await slow).toMatchObject({ status: 429, code: 'payer_open_payments', charged: 'unknown' });
    expect([latch.runs(), (await row(payment))?.state]).toEqual([1, 'failed']);
  });
});
