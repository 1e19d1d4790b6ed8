import { describe, expect, test } from 'vitest';
import { type RailFixture, WRONGS } from '../../support/rails/rail-fixture.ts';
import { problemOf, receiptOf, type Stage } from '../../support/rails/rail-stage.ts';
import { until } from '../../support/service/workers.ts';
import { decoded } from '../../support/usdc/buyer.ts';
import { KINDS } from './kinds.ts';

const AT_ONCE = 16;
const OTHER_CLIENT = '127.0.0.2';

/** Promises 5 to 8: the answers to a payment that is presented again, by another client, many times at once, or wrongly. */
export function promisesOfPresenting(fixture: RailFixture, stage: Stage): void {
  const { runsBefore } = KINDS[fixture.kind];

  test('5: the same payment presented again gets the same bytes and receipt, uncharged', async () => {
    const request = stage.request();
    const payment = await stage.pay(request);
    const first = await stage.buy(request, payment);
    const runs = stage.source.runs(request.tag);
    for (let again = 0; again < 2; again++) {
      const answer = await stage.present(request, payment);
      expect([answer.status, answer.body]).toEqual([200, first.body]);
      expect(answer.headers['payment-response']).toBe(first.headers['payment-response']);
    }
    expect(stage.source.runs(request.tag)).toBe(runs);
    expect(await payment.lost()).toBe(payment.price);
  });

  test('6: a payment that bought an answer buys nothing for another request, and a public copy buys nothing for another client', async () => {
    const [request, other] = [stage.request(), stage.request()];
    const payment = await stage.pay(request);
    const { body } = await stage.buy(request, payment);
    const refused = await stage.present(other, payment);
    expect(refused.status).toBe(402);
    expect(refused.body).not.toContain(`"tag":"${other.tag}"`);
    // A paid-first rail makes the answer for the new offer, and shows it to no client.
    expect(stage.source.runs(other.tag)).toBeLessThanOrEqual(runsBefore);
    // A signature may be public by now. A preimage is the payer's own secret, so it is proof enough.
    const elsewhere = await stage.present(request, payment, OTHER_CLIENT);
    if (fixture.kind === 'paid-first') expect([elsewhere.status, elsewhere.body]).toEqual([200, body]);
    else expect(elsewhere.status).toBe(402);
    expect((await stage.present(request, payment)).body).toBe(body);
    expect(await payment.lost()).toBe(payment.price);
  });

  test(`7: of ${AT_ONCE} presentations of one payment at once, one runs, and all served buyers get the same bytes`, async () => {
    const request = stage.request();
    const payment = await stage.pay(request);
    const before = stage.source.runs(request.tag);
    const handler = stage.source.hold(request.tag);
    const first = stage.present(request, payment);
    await handler.arrivedFrom(first);
    const others = Array.from({ length: AT_ONCE - 1 }, () => stage.present(request, payment));
    // The requests of one escrow wait for each other.
    if (fixture.kind === 'escrowed') handler.release();
    const inFlight = { status: 409, code: 'payment_in_flight', charged: 'unknown' };
    for (const other of await Promise.all(others)) {
      if (fixture.kind === 'escrowed') expect([other.status, other.body]).toEqual([200, (await first).body]);
      else expect(problemOf(other)).toEqual(inFlight);
    }
    handler.release();
    const { status } = await first;
    const served = await Promise.all(Array.from({ length: 3 }, () => stage.buy(request, payment)));
    if (status === 200) served.push(await first);
    expect(new Set(served.map(({ body }) => body)).size).toBe(1);
    expect(stage.source.runs(request.tag)).toBe(before + 1);
    expect(await payment.lost()).toBe(payment.price);
  });

  describe('8: a refused payment is a 402 with its reason and reserves nothing', () => {
    for (const wrong of WRONGS) {
      test.skipIf(fixture.cannot[wrong])(`when it is ${wrong}`, async () => {
        const request = stage.request();
        const payment = await stage.pay(request, wrong);
        const before = await payment.lost();
        const runs = stage.source.runs(request.tag);
        const refused = await stage.present(request, payment);
        expect(refused.status).toBe(402);
        expect(decoded(refused, 'payment-required').error).toMatch(/\w/);
        // Nothing ran for the payment. A paid-first rail may have made the answer for its next offer.
        expect(stage.source.runs(request.tag) - runs).toBeLessThanOrEqual(runsBefore);
        expect([await stage.find(payment.id), await payment.lost()]).toEqual([null, before]);
        if (payment.mended === null) return;
        await stage.buy(request, { header: payment.mended });
        expect(await payment.lost()).toBe(payment.price);
      });
    }
  });

  test.skipIf(fixture.cannot['spent meanwhile'])(
    '8: a payment whose payer spent the money while the handler ran is a 402, costs nothing, and is taken once the money is back',
    async () => {
      const request = stage.request();
      const payment = await stage.pay(request);
      const handler = stage.source.hold(request.tag);
      const answer = stage.present(request, payment);
      await handler.arrivedFrom(answer);
      const bringBack = await payment.spend?.();
      handler.release();
      const refused = await answer;
      if (refused.status === 503) {
        // On a slow machine the buyer's wait was over first. The settlement fails all the same.
        expect(problemOf(refused)).toMatchObject({ charged: 'unknown' });
        await until('it has failed', async () => (await stage.find(payment.id))?.state === 'failed');
      } else {
        expect(refused.status, refused.body).toBe(402);
        expect(receiptOf(refused)).toMatchObject({ success: false, transaction: '' });
      }
      expect([(await stage.find(payment.id))?.state, await payment.lost()]).toEqual(['failed', 0n]);
      await bringBack?.();
      await stage.buy(request, payment);
      expect(await payment.lost()).toBe(payment.price);
    },
  );
}
