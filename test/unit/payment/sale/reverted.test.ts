import { describe, expect, test } from 'vitest';
import { AppError, BadParameter, TooMany, Unavailable, UpstreamFailed } from '../../../../src/errors.ts';
import { PaymentRefused } from '../../../../src/payment/refusal.ts';
import { REVERTED } from '../../../../src/payment/settler.ts';
import {
  CHAIN_AWAY,
  CLIENT,
  LACKS_MONEY,
  NO_LIMITS,
  NONCE_USED,
  openReviews,
  openSale,
  PRICE,
  REPLY_BYTES,
  TRANSACTION,
} from '../../../support/payment/sale-world.ts';
import { latchedEndpoint } from '../../../support/service/latch.ts';

const OTHER = '192.0.2.2';
const IDENTIFIER = 'order-17-of-the-buyer';
const USED = { name: 'PaymentRefused', reason: 'payment_already_used' };
const AGAIN = { answer: { tag: 'none', run: 2 } };
const AGAIN_WORDS = '(whether this payment has moved money is open: present the same one again)';

/** A payment of the latched endpoint, or of the moody one, that has reverted. The next look shows that it has paid. */
async function openReverted({ isMoody = false, identifier = '', ...options }: Options = {}) {
  const world = openSale({ limits: NO_LIMITS, ...options });
  const call = isMoody ? { of: world.moody } : {};
  const { payment } = await world.paymentThatIs('reverted', call, world.sign({ ...call, identifier }));
  world.says.looksUp = PRICE;
  world.asked.length = 0;
  world.heard.length = 0;
  return { ...world, payment, call };
}
type Options = Parameters<typeof openSale>[0] & { isMoody?: boolean; identifier?: string };

describe('a payment that has reverted', () => {
  test('buys again for its first presenter, as often as it reverts, and each time after a look at the evidence', async () => {
    const { sell, payment, says, asked, heard } = await openReverted();
    says.looksUp = 'reverted';
    expect(await sell({}, payment)).toMatchObject({ reason: REVERTED });
    says.looksUp = PRICE;
    asked.length = 0;
    expect(await sell({}, payment)).toMatchObject({ answer: { tag: 'none', run: 3 } });
    expect(heard.splice(0, 4)).toMatchObject([{ step: 'review' }, {}, {}, {}]);
    expect(asked).toEqual(['row', 'review', 'terms', 'signature', 'payer', 'reserve', 'verify', 'look up']);
    const asker = { client: CLIENT, isLeft: false };
    expect(heard).toMatchObject([
      { step: 'review', ...asker },
      { step: 'signature', ...asker },
      { step: 'payer', ...asker, isAgain: true },
      { step: 'verify', ...asker, isAgain: true },
    ]);
  });

  test('is judged by its new row once it is sold again: in flight first, and then it has its answer', async () => {
    const { sell, payment, hold } = await openReverted();
    const { arrived, go } = hold('verify');
    const again = sell({}, payment);
    await arrived;
    expect(await sell({}, payment)).toMatchObject({ status: 409, code: 'payment_in_flight', charged: 'unknown' });
    go();
    expect(await again).toMatchObject(AGAIN);
    expect(await sell({}, payment)).toMatchObject(AGAIN);
  });

  test('buys nothing for another request or client: a third party may have sent it, and may present it', async () => {
    const { sell, payment, says, row, moody, latch } = await openReverted();
    for (const evidence of ['unused', 'paid'] as const) {
      says.evidence = evidence;
      for (const call of [{ of: moody }, { query: { tag: 'other' } }, { client: OTHER }])
        expect(await sell(call, payment)).toMatchObject(USED);
    }
    expect(await row(payment)).toMatchObject({ state: 'failed', reason: REVERTED });
    expect([latch.runs(), moody.runs()]).toEqual([1, 0]);
    says.evidence = 'unused';
    expect(await sell({}, payment)).toMatchObject(AGAIN);
  });

  test.each<[string, string, object, string, boolean]>([
    ['with it, from any address', IDENTIFIER, { client: OTHER }, IDENTIFIER, true],
    ['without it, from the same address', IDENTIFIER, {}, '', false],
    ['with another one, from the same address', IDENTIFIER, {}, 'order-18-of-the-buyer', false],
    ['with one that the row lacks, from the same address', '', {}, IDENTIFIER, true],
    ['with one that the row lacks, from another address', '', { client: OTHER }, IDENTIFIER, false],
  ])('has an identifier, and is presented %s', async (_, identifier, call, presented, isSold) => {
    const { sell, sign, payment } = await openReverted({ identifier });
    const again = sign({ like: payment, identifier: presented });
    expect(await sell(call, again)).toMatchObject(isSold ? AGAIN : USED);
  });

  test('buys nothing where its row is from before payments were hashed', async () => {
    const { sell, payment, rewrite } = await openReverted();
    rewrite('authorization_hash = NULL');
    expect(await sell({}, payment)).toMatchObject(USED);
  });

  test('ends where it was used elsewhere since, and is never looked up again', async () => {
    const { sell, payment, says, row, heard } = await openReverted();
    says.evidence = 'used elsewhere';
    const end = { reason: NONCE_USED.reason, settlement: { success: false } };
    expect(await sell({}, payment)).toMatchObject(end);
    says.evidence = 'unused';
    expect(await sell({}, payment)).toMatchObject(end);
    expect(await row(payment)).toMatchObject({ state: 'failed', reason: NONCE_USED.reason });
    expect(heard).toHaveLength(1);
  });

  test('stays unknown while the evidence cannot be read, and so does its row', async () => {
    const { sell, payment, says, row } = await openReverted();
    says.evidence = 'unread';
    const answer = await sell({}, payment);
    expect(answer).toMatchObject({ status: 503, code: 'settlement_unknown', charged: 'unknown' });
    expect(answer.message).not.toContain(AGAIN_WORDS);
    expect(await row(payment)).toMatchObject({ state: 'failed', reason: REVERTED });
  });

  test('is looked up once a second at most, and delays no other’s look', async () => {
    const { sell, payment, says, heard, clock, paymentThatIs } = await openReverted();
    const { payment: another } = await paymentThatIs('reverted');
    heard.length = 0;
    says.evidence = 'unread';
    await sell({}, payment);
    await clock.advance(600);
    await sell({}, payment);
    await sell({}, another);
    await clock.advance(399);
    await sell({}, payment);
    await clock.advance(1);
    await sell({}, payment);
    expect(heard).toMatchObject([true, false, true, false, true].map((mayLookUp) => ({ mayLookUp })));
  });
});

describe('a payment that has reverted and was then paid by a third party', () => {
  async function openPaid(options?: Options) {
    const world = await openReverted(options);
    world.says.evidence = 'paid';
    return world;
  }

  test('is stored as it was checked before, as of a plain account', async () => {
    const { sell, payment, row } = await openPaid();
    expect(await sell({}, payment)).toMatchObject(AGAIN);
    const kept = { checkedBlock: 7, payerHasCode: false, transaction: TRANSACTION };
    expect(await row(payment)).toMatchObject({ state: 'settled', ...kept });
  });

  test('is looked up once, and then known to have paid', async () => {
    const { sell, payment, call, heard, moody, paymentThatIs } = await openPaid({ isMoody: true });
    const other = await paymentThatIs('reverted', call);
    heard.length = 0;
    moody.fail();
    for (const each of [payment, payment, other.payment, other.payment])
      expect(await sell(call, each)).toMatchObject({ status: 502 });
    expect(heard).toMatchObject([{ step: 'review' }, { step: 'review' }]);
  });

  test('is served, whatever its time and its payer: only the call must be the same', async () => {
    const { sell, payment, call, says, asked, moody } = await openPaid({ isMoody: true });
    [says.refuses, says.shortage, says.payer, says.signature] = ['a ban', 'late', LACKS_MONEY, LACKS_MONEY];
    moody.fail();
    expect(await sell(call, payment)).toMatchObject({ status: 502, charged: 'unknown' });
    moody.recover();
    expect(await sell(call, payment)).toHaveProperty('answer');
    expect(asked).toEqual(['row', 'review', 'reserve', 'row', 'reserve', 'look up']);
  });

  test('is served for what was signed, whatever the client says that it accepts', async () => {
    const { sell, sign, payment } = await openPaid();
    expect(await sell({}, sign({ like: payment, accepts: { maxTimeoutSeconds: 1 } }))).toMatchObject(AGAIN);
  });

  test('is not said to have cost nothing where it is presented for a call of another price, whatever it says to accept', async () => {
    const { sell, sign, payment, row } = await openPaid();
    const dearer = { of: latchedEndpoint('/test/latch', '0.002') };
    for (const each of [payment, sign({ like: payment, accepts: { amount: '2000' } })])
      expect(await sell(dearer, each)).toMatchObject({
        status: 409,
        code: 'payment_of_other_terms',
        charged: 'unknown',
        // To present it for this call again, as other failures advise, would be in vain.
        message: expect.stringMatching(/present it for a call with the same price$/),
      });
    expect((await row(payment))?.state).toBe('failed');
  });

  test('buys nothing that cannot be kept', async () => {
    const { sell, payment, row, latch } = await openPaid({ storeBytes: REPLY_BYTES });
    expect(await sell({}, payment)).toMatchObject({ status: 503, code: 'reply_store_full', charged: 'unknown' });
    expect([latch.runs(), (await row(payment))?.state]).toEqual([1, 'failed']);
  });

  test('runs failing calls no more often than any payment, and is never refused for a day', async () => {
    const limits = { payer: 2, client: 0, clientSettlements: 1 };
    const { sell, payment, call, heard, moody, clock } = await openPaid({ isMoody: true, limits });
    await clock.advance(60_000);
    moody.fail();
    for (let at = 0; at < 2; at++) expect(await sell(call, payment)).toMatchObject({ status: 502, charged: 'unknown' });
    heard.length = 0;
    const waiting = { status: 429, code: 'payer_failures', charged: 'unknown', retryAfterSeconds: 60 };
    expect(await sell(call, payment)).toMatchObject(waiting);
    // Refused before any look at the evidence, which may cost requests.
    expect(heard).toEqual([]);
    moody.recover();
    await clock.advance(60_000);
    expect(await sell(call, payment)).toHaveProperty('answer');
  });
});

describe('an uncharged failure of a payment that has reverted never says that it cost nothing', () => {
  type Prepare = (says: Awaited<ReturnType<typeof openReverted>>['says']) => void;
  test.each<[string, Prepare, object]>([
    [
      'while the payer must wait',
      (says) => {
        says.refuses = 'its payments cost gas';
      },
      { status: 429, code: 'payer_refused', retryAfterSeconds: 3600 },
    ],
    [
      'while nothing can be settled',
      (says) => {
        says.shortage = 'late';
      },
      { status: 503, code: 'settlement_unavailable' },
    ],
    [
      'while the chain is away',
      (says) => {
        says.verify = CHAIN_AWAY;
      },
      { status: 503, code: 'settlement_unavailable', retryAfterSeconds: 5, cause: CHAIN_AWAY },
    ],
  ])('%s', async (_, prepare, expected) => {
    const { sell, payment, says, row } = await openReverted();
    prepare(says);
    expect(await sell({}, payment)).toMatchObject({ ...expected, charged: 'unknown' });
    expect((await row(payment))?.state).toBe('failed');
  });

  const cause = new Error('away');
  const errors = [{ path: 'a', message: 'is missing' }];
  const headers = { 'x-a': 'b' };
  const bug = new Error('the reply does not match its schema');
  test.each<[string, Error, object]>([
    ['its cause', new UpstreamFailed('test', 'no answer', cause), { status: 502, code: 'upstream_failed', cause }],
    ['its wait', new TooMany('too_often', 'wait', 17), { status: 429, code: 'too_often', retryAfterSeconds: 17 }],
    ['a wait of nothing', new Unavailable('upstream_busy', 'busy', 0), { status: 503, retryAfterSeconds: 0 }],
    ['its list of errors', new BadParameter(errors), { status: 400, errors }],
    ['its header fields', new AppError(418, 'teapot', 'short', { headers }), { status: 418, headers }],
    ['nothing where it is a fault of ours', bug, { status: 500, code: 'internal', cause: bug }],
  ])('and keeps %s', async (_, failure, kept) => {
    const { sell, payment, call, moody, row } = await openReverted({ isMoody: true });
    moody.fail(failure as AppError);
    const answer = await sell(call, payment);
    expect(answer).toBeInstanceOf(AppError);
    expect(answer).toMatchObject({ ...kept, charged: 'unknown' });
    const words = failure === bug ? 'This is a fault of the service, logged under the request id' : failure.message;
    expect(answer.message).toBe(`${words} ${AGAIN_WORDS}`);
    expect(answer instanceof Unavailable).toBe(failure instanceof Unavailable);
    for (const member of ['retryAfterSeconds', 'errors'] as const)
      expect(answer[member]).toBe((failure as AppError)[member]);
    expect((await row(payment))?.state).toBe('failed');
  });

  test('and keeps a refusal, which says why no money can move', async () => {
    const { sell, payment, says } = await openReverted();
    says.payer = LACKS_MONEY;
    const refused = await sell({}, payment);
    expect(refused).toBeInstanceOf(PaymentRefused);
    expect(refused).toBe(LACKS_MONEY);
  });
});

test('a bounded number of paid payments is remembered, and the oldest is looked up again', async () => {
  const { present, mays } = openReviews('paid');
  for (let at = 0; at < 10_000; at++) expect(await present(`payment ${at}`)).toBe('paid');
  expect(await present('payment 0')).toBe('paid');
  expect(mays).toHaveLength(10_000);
  await present('one too many');
  await present('payment 1');
  expect(mays).toHaveLength(10_001);
  await present('payment 0');
  expect(mays).toHaveLength(10_002);
});

test('a look that ends a payment is forgotten, so that its next presentation does not wait', async () => {
  const { present, mays } = openReviews('used elsewhere');
  for (let at = 0; at < 2; at++) expect(await present('payment')).toBeInstanceOf(PaymentRefused);
  expect(mays).toEqual([true, true]);
});
