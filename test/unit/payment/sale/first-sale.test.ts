import { expect, test } from 'vitest';
import { z } from 'zod';
import { BadParameter } from '../../../../src/errors.ts';
import { PaymentRefused } from '../../../../src/payment/refusal.ts';
import { SOURCES_OF } from '../../../support/payment/call.ts';
import { CHAIN_AWAY, CLIENT, LACKS_MONEY, openSale, PRICE, storeFails } from '../../../support/payment/sale-world.ts';

test('a payment is checked in the order of what the checks cost, reserved, served, settled and delivered', async () => {
  const { sell, sign, row, asked } = openSale();
  const payment = sign();
  expect(await sell({}, payment)).toMatchObject({ answer: { tag: 'none', run: 1 } });
  expect(asked).toEqual(['row', 'terms', 'signature', 'payer', 'reserve', 'verify', 'settle']);
  const sold = { state: 'settled', amount: 1000n, price: 1000n, charged: 1000n };
  expect(await row(payment)).toMatchObject({ ...sold, checkedBlock: 7, payerHasCode: true });
});

test('an answer has the receipt and the time of its settlement, and a delivery is noted once', async () => {
  const { sell, sign, row, clock } = openSale();
  const payment = sign();
  const { receipt, at, onSent } = await sell({}, payment);
  const payer = `0x${Buffer.from(payment.authorization.from).toString('hex')}`;
  const transaction = `0x${'ab'.repeat(32)}`;
  expect(receipt).toEqual({ success: true, network: 'eip155:5042', amount: '1000', payer, transaction });
  expect([at, (await row(payment))?.deliveredAt]).toEqual([clock.nowMs(), null]);
  await onSent?.();
  expect((await row(payment))?.deliveredAt).toBe(clock.nowMs());
  const again = await sell({}, payment);
  expect([again.receipt, again.at, again.onSent]).toEqual([receipt, at, undefined]);
});

test('an answer that was settled by a transfer without a transaction yet says so with an empty one', async () => {
  const { sell, sign, rewrite } = openSale();
  const payment = sign();
  await sell({}, payment);
  rewrite('transaction_hash = NULL');
  expect(await sell({}, payment)).toMatchObject({ receipt: { transaction: '' } });
});

test('a payment with other terms than the offer’s costs one read of the ledger', async () => {
  const { sell, sign, asked } = openSale();
  expect(await sell({}, sign({ accepts: { amount: '1' } }))).toBeInstanceOf(PaymentRefused);
  expect(asked).toEqual(['row']);
});

test('a route that is not sold any more takes no payment, and a payment from before still gets its answer', async () => {
  const { sell, sign, asked, latch } = openSale();
  const payment = sign();
  const first = await sell({}, payment);
  asked.length = 0;
  const of = { endpoint: { ...latch.endpoint, isOff: true as const } };
  expect(await sell({ of })).toMatchObject({ reason: 'No matching payment requirements' });
  expect(asked).toEqual(['row']);
  expect((await sell({ of }, payment)).answer).toEqual(first.answer);
});

test.each<[string, boolean, object]>([
  ['a parameter that the route does not know', false, { status: 400, charged: false }],
  ['a parameter that is off here', true, { status: 400, errors: [{ path: 'tag' }] }],
])('a call with %s is refused before anything is asked: a typo is not paid for', async (_, isOff, refusal) => {
  const { sell, asked, latch } = openSale();
  const checkParams = () => {
    throw new BadParameter([{ path: 'tag', message: 'is off' }]);
  };
  const of = { endpoint: { ...latch.endpoint, ...(isOff && { checkParams }) } };
  expect(await sell({ of, query: isOff ? {} : { tga: 'a' } })).toMatchObject(refusal);
  expect([asked, latch.runs()]).toEqual([[], 0]);
});

test('a call that is sold is judged once, and runs with the sources of sales, which come first at the chain', async () => {
  const { sell, latch } = openSale();
  const [judged, ranWith]: [unknown[], unknown[]] = [[], []];
  const { run } = latch.endpoint;
  const endpoint: typeof latch.endpoint = {
    ...latch.endpoint,
    checkParams: (params) => void judged.push(params),
    run: (params, sources, signal) => {
      ranWith.push(sources);
      return run(params, sources, signal);
    },
  };
  expect(await sell({ of: { endpoint } })).toHaveProperty('answer');
  expect([judged, ranWith]).toEqual([[{ tag: 'none' }], [SOURCES_OF.sale]]);
});

test('the scheme learns who asks, what it read before, the price, and that the payment is presented for the first time', async () => {
  const { sell, heard, says } = openSale();
  await sell();
  const asker = { client: CLIENT, hasFailed: false, isLeft: false };
  expect(heard).toEqual([
    { step: 'signature', ...asker },
    { step: 'payer', ...asker, signedAt: 5, isAgain: false, price: PRICE },
    { step: 'verify', ...asker, seenAt: 6, isAgain: false, price: PRICE },
  ]);
  says.payer = LACKS_MONEY;
  await sell();
  await sell();
  expect(heard.at(-1)).toMatchObject({ hasFailed: true });
});

test('a call that is under way loses its precedence with the first failure of its client', async () => {
  const { sell, hold, heard, says } = openSale();
  const { arrived, go } = hold('signature');
  const second = sell();
  await arrived;
  says.payer = LACKS_MONEY;
  await sell();
  says.payer = null;
  go();
  await second;
  const ofSecond = heard.filter((one) => 'step' in one && one.step !== 'signature').slice(1);
  expect(ofSecond).toEqual([
    expect.objectContaining({ step: 'payer', hasFailed: true }),
    expect.objectContaining({ step: 'verify', hasFailed: true }),
  ]);
});

test('the reply is stored with all that settling needs before the payment is handed to the settler, as never broadcast', async () => {
  const { sell, sign, row, hold, handed } = openSale();
  const { arrived, go } = hold('settle');
  const payment = sign();
  const answer = sell({}, payment);
  await arrived;
  const { from, nonce, signature } = payment.authorization;
  const kept = { signature, checkedBlock: 7, payerHasCode: true, calldata: null };
  expect(await row(payment)).toMatchObject({ state: 'settling', ...kept });
  const read = { fromBlock: 7, hasCode: true, authorization: { from, nonce } };
  expect(handed).toMatchObject([{ id: (await row(payment))?.id, broadcast: false, ...read }]);
  go();
  expect((await answer).answer).toEqual((await sell({}, payment)).answer);
});

test('a reservation is known to be served from before its row can be there until its answer: no reconciliation gives it up', async () => {
  const { sell, sign, row, store, latch, isServed } = openSale();
  const ids: string[] = [];
  const { reserve } = store;
  store.reserve = (given, ...rest) => {
    ids.push(given.id);
    expect(isServed(given.id)).toBe(true);
    return reserve(given, ...rest);
  };
  const payment = sign();
  latch.close();
  const started = latch.started();
  const answer = sell({}, payment);
  await started;
  const id = (await row(payment))?.id ?? '';
  expect([isServed(id), ids]).toEqual([true, [id]]);
  latch.open();
  await answer;
  expect(isServed(id)).toBe(false);
  // One that gets no row has an id too.
  store.reserve = async ({ id: lost }) => {
    ids.push(lost);
    return false;
  };
  await sell();
  expect(ids.map(isServed)).toEqual([false, false]);
  expect(ids[0]).not.toBe(ids[1]);
});

test('a buyer who leaves while the reply is made or checked pays nothing, and may buy again with the same payment', async () => {
  const { sell, sign, row, asked, latch } = openSale();
  const [early, late] = [new AbortController(), new AbortController()];
  const payment = sign();
  latch.close();
  const started = latch.started();
  const gone = sell({ signal: early.signal }, payment);
  await started;
  early.abort();
  latch.open();
  const left = { status: 499, code: 'client_gone', charged: false };
  expect(await gone).toMatchObject(left);
  const leaving = z.string().refine(() => {
    late.abort();
    return true;
  });
  const of = { endpoint: { ...latch.endpoint, result: z.object({ tag: leaving }) } };
  expect(await sell({ of, signal: late.signal }, payment)).toMatchObject(left);
  expect([await row(payment), asked.includes('settle')]).toEqual([null, false]);
  expect(await sell({}, payment)).toHaveProperty('answer');
});

test('a reservation is given back when the call fails, so that the same payment may buy again', async () => {
  const { sell, sign, row, moody } = openSale();
  moody.fail();
  const payment = sign({ of: moody });
  expect(await sell({ of: moody }, payment)).toMatchObject({ status: 502, charged: false });
  expect(await row(payment)).toBeNull();
  moody.recover();
  expect(await sell({ of: moody }, payment)).toHaveProperty('answer');
});

test('a check whose source fails is 503, with the failure for the log', async () => {
  const { sell, says } = openSale();
  const unavailable = { status: 503, code: 'settlement_unavailable', charged: false, retryAfterSeconds: 5 };
  for (const step of ['signature', 'payer', 'verify'] as const) {
    says[step] = CHAIN_AWAY;
    expect(await sell()).toMatchObject({ ...unavailable, cause: CHAIN_AWAY });
    says[step] = null;
  }
});

test('a store that fails while it keeps the reply is the answer where the reservation was given back after all', async () => {
  const { sell, failures, store, taken } = openSale({ limits: { payer: 1, client: 1, clientSettlements: 1 } });
  store.move = storeFails();
  expect(await sell()).toMatchObject({ code: 'ledger_unavailable', charged: false });
  expect([failures.hasFailed(CLIENT), taken.back]).toEqual([false, 1]);
});
