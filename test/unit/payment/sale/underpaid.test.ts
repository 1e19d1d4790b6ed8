import { describe, expect, test } from 'vitest';
import { Underpaid } from '../../../../src/payment/receipt.ts';
import { lastCheck, openSale, PRICE, type Standing } from '../../../support/payment/sale-world.ts';
import { latchedEndpoint } from '../../../support/service/latch.ts';

const ALERT = 'ALERT: an answer was held back because less was paid';
const SOLD = { answer: { tag: 'none', run: 1 } };
const HELD_BACK = { code: 'underpaid', charged: 'unknown' };

test('an answer is held back where less was paid than it costs, at each presentation, and an operator hears of it', async () => {
  const { sell, sign, says, alerts, row } = openSale();
  says.settles = 999n;
  const payment = sign();
  const error = await sell({}, payment);
  expect(error).toBeInstanceOf(Underpaid);
  expect(error).toMatchObject({ status: 500, code: 'underpaid', charged: 'unknown' });
  expect(error.cause).toEqual({ payment: (await row(payment))?.id, paid: '999', price: '1000' });
  expect(error.message).not.toMatch(/999|1000/);
  expect(await sell({}, payment)).toMatchObject({ code: 'underpaid', charged: 'unknown' });
  expect(alerts).toEqual([ALERT, ALERT]);
});

test('an answer leaves where enough was paid, again and again, without another look at the evidence', async () => {
  const { sell, sign, asked, alerts } = openSale();
  const payment = sign();
  const first = await sell({}, payment);
  asked.length = 0;
  expect((await sell({}, payment)).answer).toEqual(first.answer);
  expect([asked, alerts]).toEqual([['row'], []]);
});

test.each([
  ['nothing', 1000n, 0n, false],
  ['less than the price', 2000n, 999n, false],
  ['the price', 1n, 1000n, true],
])('what the evidence says was paid decides, not what was signed: %s', async (_, signed, paid, isSold) => {
  const { sell, sign, says } = openSale();
  says.settles = paid;
  expect(await sell({}, sign({ value: signed }))).toMatchObject(isSold ? SOLD : HELD_BACK);
});

test.each([
  ['is judged by what was signed', 1000, true],
  ['is held back where that is less than the price', 1001, false],
])('an answer whose row is from before the paid amount was kept %s', async (_, price, isSold) => {
  const { sell, sign, rewrite } = openSale();
  const payment = sign();
  await sell({}, payment);
  rewrite(`charged = NULL, price = ${price}`);
  expect(await sell({}, payment)).toMatchObject(isSold ? SOLD : HELD_BACK);
});

test('a price below what was signed is what later deliveries are judged by too', async () => {
  const { sell, sign, row, says } = openSale();
  const of = latchedEndpoint('/test/cheap', '0.0008');
  const payment = sign({ of, value: 1000n });
  says.settles = 900n;
  expect(await sell({ of }, payment)).toHaveProperty('answer');
  expect(await row(payment)).toMatchObject({ amount: 1000n, price: 800n, charged: 900n });
  expect(await sell({ of }, payment)).toHaveProperty('answer');
});

describe('the last check', () => {
  test('holds back an answer to a row without its price, and lets one go that was paid more', () => {
    expect(lastCheck({}, PRICE + 1n)).toBeInstanceOf(Underpaid);
    expect(lastCheck({}, PRICE)).toHaveProperty('body');
    expect(lastCheck({}, PRICE / 2n)).toHaveProperty('body');
  });

  test.each(['reserved', 'settling', 'unknown', 'failed'] as const satisfies Standing[])(
    'holds back an answer to a payment that is %s',
    (state) => {
      expect(lastCheck({ state }, 1n)).toBeInstanceOf(Underpaid);
    },
  );
});
