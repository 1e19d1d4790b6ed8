import { expect, test } from 'vitest';
import type { RailFixture } from '../../support/rails/rail-fixture.ts';
import { problemOf, receiptOf, type Stage } from '../../support/rails/rail-stage.ts';
import { PRICES } from '../../support/rails/source.ts';
import { until } from '../../support/service/workers.ts';
import { decoded } from '../../support/usdc/buyer.ts';
import { KINDS } from './kinds.ts';

const FAILED = { status: 502, code: 'upstream_failed', charged: false };

/** Promises 1 to 4: the offer, the sale, the price, and a failing handler. */
export function promisesOfSelling(fixture: RailFixture, stage: Stage): void {
  const { runsBefore } = KINDS[fixture.kind];

  test('1: an unpaid call is offered its price, costs nothing, and runs nothing on a signed-first rail', async () => {
    const request = stage.request();
    const offered = await stage.offer(request);
    const { accepts } = decoded(offered, 'payment-required') as { accepts: { amount: string }[] };
    const price = fixture.unitsOf(PRICES.cheap);
    expect(new Set(accepts.map(({ amount }) => BigInt(amount)))).toEqual(new Set([price]));
    expect(stage.source.runs(request.tag) > 0).toBe(runsBefore > 0);
    expect(offered.headers['payment-response']).toBeUndefined();
    // The service knows nothing of a payment that is not presented. A signed one has moved no money.
    const payment = await stage.rail.pay(offered);
    expect(await payment.lost()).toBe(fixture.kind === 'paid-first' ? price : 0n);
    expect(await stage.find(payment.id)).toBeNull();
  });

  test('2: a paid call is answered once its payment is decided, and the receipt names evidence that can be looked up', async () => {
    const request = stage.request();
    const payment = await stage.pay(request);
    if (fixture.kind === 'signed-first') await expectHeldBack(stage);
    else if (fixture.kind === 'escrowed') await expectSoldAtOnce(stage);
    else expect(await payment.lost()).toBe(payment.price);
    const before = stage.source.runs(request.tag);
    const answer = await stage.buy(request, payment);
    expect(JSON.parse(answer.body)).toEqual({ tag: request.tag, run: before + 1 });
    const receipt = receiptOf(answer);
    expect(receipt.success).toBe(true);
    const moved = payment.moved ?? payment.price;
    expect(await stage.rail.evidenceOf(receipt)).toBe(moved);
    expect((await stage.find(stage.idIn(receipt)))?.amount).toBe(String(moved));
    expect(await payment.lost()).toBe(payment.price);
  });

  test('3: a sale takes the price of this request, and a payment of a lower price does not buy it', async () => {
    for (const endpoint of ['cheap', 'dear'] as const) {
      const request = stage.request(endpoint);
      const payment = await stage.pay(request);
      const answer = await stage.buy(request, payment);
      const units = fixture.unitsOf(PRICES[endpoint]);
      expect([payment.price, await payment.lost()]).toEqual([units, units]);
      expect(await stage.rail.evidenceOf(receiptOf(answer))).toBe(payment.moved ?? units);
    }
    const [cheap, dear] = [stage.request('cheap'), stage.request('dear')];
    const payment = await stage.pay(cheap);
    const before = await payment.lost();
    expect((await stage.present(dear, payment)).status).toBe(402);
    expect([await payment.lost(), await stage.find(payment.id)]).toEqual([before, null]);
    expect((await stage.buy(cheap, payment)).status).toBe(200);
  });

  test('4: a failing handler costs nothing, and the same payment gets its answer afterwards', async () => {
    const request = stage.request();
    const payment = await stage.pay(request);
    const before = stage.source.runs(request.tag);
    stage.source.fail(request.tag);
    const answer = await stage.present(request, payment);
    expect(stage.source.runs(request.tag)).toBe(before + 1);
    if (fixture.kind !== 'paid-first') {
      expect(problemOf(answer)).toEqual(FAILED);
      expect([await payment.lost(), await stage.find(payment.id)]).toEqual([0n, null]);
      stage.source.recover(request.tag);
    } else {
      // The buyer gets the reply that was made before the offer. A reply that cannot be made is not offered.
      expect([answer.status, JSON.parse(answer.body).run]).toEqual([200, before]);
      const unmade = stage.request();
      stage.source.fail(unmade.tag);
      const refused = await stage.ask(unmade.path);
      expect(problemOf(refused)).toEqual(FAILED);
      expect(refused.headers['payment-required']).toBeUndefined();
    }
    await stage.buy(request, payment);
    expect(await payment.lost()).toBe(payment.price);
  });
}

/** Expects that a buyer gets nothing before the settlement has ended, except that it may be told to ask again. */
async function expectHeldBack(stage: Stage): Promise<void> {
  const request = stage.request();
  const payment = await stage.pay(request);
  const hanging = await stage.hang();
  let isHeldBack = true;
  const answer = stage.presentUntilTaken(request, payment).finally(() => {
    isHeldBack = false;
  });
  await hanging.arrived(payment);
  // On a slow machine the buyer's wait may be over before this sees it. Then the row is `unknown`, and the buyer was asked to try again.
  await until('the answer is stored', async () =>
    ['settling', 'unknown'].includes(String((await stage.find(payment.id))?.state)),
  );
  const unknown = { status: 503, charged: 'unknown' };
  if (!isHeldBack) expect(problemOf(await answer)).toMatchObject(unknown);
  await hanging.heal();
  if ((await answer).status !== 200) expect(problemOf(await answer)).toMatchObject(unknown);
  await stage.buy(request, payment);
  expect((await stage.find(payment.id))?.state).toBe('settled');
}

/** Expects that a buyer whose money is in escrow waits for no block, and that the seller gets the money later. */
async function expectSoldAtOnce(stage: Stage): Promise<void> {
  const request = stage.request();
  const payment = await stage.pay(request);
  const hanging = await stage.hang();
  expect((await stage.presentUntilTaken(request, payment)).status).toBe(200);
  expect((await stage.find(payment.id))?.state).toBe('settled');
  await hanging.heal();
  expect(await payment.lost()).toBe(payment.price);
}
