import { expect, test } from 'vitest';
import { formsOf } from '../../support/lightning/settle-calls.ts';
import type { RailFixture } from '../../support/rails/rail-fixture.ts';
import { problemOf, receiptOf, type Stage } from '../../support/rails/rail-stage.ts';
import { until } from '../../support/service/workers.ts';
import { KINDS } from './kinds.ts';

/** Promises 9, 11 and 12: the answer for a payment of unknown outcome, the lookup, and the secrets that are never shown. */
export function promisesOfReporting(fixture: RailFixture, stage: Stage): void {
  const { serving, end } = KINDS[fixture.kind];

  test.skipIf(fixture.cannot['unclear settlement'])(
    '9: an unclear settlement is 503 with `charged: "unknown"`, never a 402, and ends as the evidence says',
    async () => {
      const request = stage.request();
      const payment = await stage.pay(request);
      const before = stage.source.runs(request.tag);
      const hanging = await stage.hang();
      for (let again = 0; again < 2; again++) {
        const answer = await stage.presentUntilTaken(request, payment);
        expect(problemOf(answer)).toMatchObject({ status: 503, charged: 'unknown' });
        expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
        expect(answer.headers['payment-required']).toBeUndefined();
      }
      expect((await stage.find(payment.id))?.state).toBe(fixture.kind === 'signed-first' ? 'unknown' : 'claimed');
      await hanging.heal();
      const answer = await stage.buy(request, payment);
      expect(stage.source.runs(request.tag)).toBe(before + 1);
      expect(await stage.rail.evidenceOf(receiptOf(answer))).toBe(payment.moved ?? payment.price);
      expect(await payment.lost()).toBe(payment.price);
    },
  );

  test('11: the lookup shows how a payment ended, by the payer’s own identifier and by the receipt’s', async () => {
    const request = stage.request();
    const payment = await stage.pay(request);
    expect(await stage.find(payment.id)).toBeNull();
    const handler = stage.source.hold(request.tag);
    const presented = stage.present(request, payment);
    await handler.arrivedFrom(presented);
    expect((await stage.find(payment.id))?.state ?? null).toBe(serving);
    handler.release();
    await presented;
    const answer = await stage.buy(request, payment);
    // The delivery is noted after the last byte of the answer has left.
    await until('the sale has ended', async () => (await stage.find(payment.id))?.state === end);
    const receipt = receiptOf(answer);
    const found = await stage.find(payment.id);
    const shown = { amount: String(payment.moved ?? payment.price), transaction: receipt.transaction || null };
    expect(found).toMatchObject({ ...shown, at: expect.any(Number) });
    expect(await stage.find(stage.idIn(receipt))).toEqual(found);
    expect(JSON.stringify(found)).not.toContain(request.tag);
  });

  test('12: no answer and no log line contains a secret of the payer or the seller, for a sold and a refused payment', async () => {
    const [sold, forged] = [stage.request(), stage.request()];
    const { body } = await stage.buy(sold, await stage.pay(sold));
    await stage.present(forged, await stage.pay(forged, 'forged'));
    const { answers, log } = stage.said();
    // The search itself works: it finds text that must be there.
    expect(answers).toContain(body);
    expect(log).toMatch(/"level":"(debug|warn)"/);
    const ofPayers = stage.paid().flatMap(({ secret }) => formsOf(secret));
    const ofSeller = stage.rail.secrets.flatMap(formsOf);
    const neverAnswered = fixture.cannot['secret kept from answers'] ? ofSeller : [...ofPayers, ...ofSeller];
    for (const form of neverAnswered) expect(answers.includes(String(form)), 'a secret in an answer').toBe(false);
    for (const form of [...ofPayers, ...ofSeller])
      expect(log.includes(String(form)), 'a secret in the log').toBe(false);
    for (const { header } of stage.paid()) expect(answers.includes(header) || log.includes(header)).toBe(false);
  });
}
