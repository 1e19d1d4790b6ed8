import { describe, expect, test } from 'vitest';
import type { Order } from '../../../src/payment/call.ts';
import { createReuse } from '../../../src/payment/known-payment.ts';
import type { PurchaseRail } from '../../../src/payment/rail.ts';
import { PaymentRefused } from '../../../src/payment/refusal.ts';
import type { Found } from '../../../src/payment/settler.ts';
import type { Payment } from '../../../src/store/ports/payments.ts';
import { hash32, reservation } from '../../support/ledger/ledger-rows.ts';
import { createManualClock } from '../../support/manual-clock.ts';

const SETTLED: Found = { kind: 'settled', transaction: Buffer.alloc(32, 1), block: 9, paid: 1000n };
const FAILED: Found = { kind: 'failed', reason: 'payment_already_used' };
const known = { ...reservation('a', 'a'), state: 'failed' } as unknown as Payment;
const asker = { client: '192.0.2.1', hasFailed: false, signal: new AbortController().signal };

/** The test decides what the evidence says. `mays` records for each review whether it was allowed to ask the evidence. */
function bench() {
  const clock = createManualClock(1_800_000_000_000);
  const self = { verdict: { kind: 'open' } as Found, mays: [] as boolean[], ruledOut: [] as unknown[] };
  const review: PurchaseRail['review'] = async (_authorization, _known, { mayLookUp }) => {
    self.mays.push(mayLookUp());
    return self.verdict;
  };
  const ledger = {
    ruleOut: async (id: string, reason: string) => {
      self.ruledOut.push([id, reason]);
      return true;
    },
  };
  const reuse = createReuse({ ledger, clock });
  const present = (name = 'authorization') => {
    const order = { authorizationHash: hash32(name), rail: { review } } as unknown as Order<object>;
    return reuse(known, order, asker).catch((error: unknown) => error);
  };
  return { self, clock, present };
}

describe('an authorization that reverted and is presented again', () => {
  test('is sold for again while it is unused, each time after a lookup of the evidence', async () => {
    const { self, present } = bench();
    expect([await present(), await present()]).toEqual(['open', 'open']);
    expect([self.mays.length, self.ruledOut]).toEqual([2, []]);
  });

  test('that has paid us is owed an answer, and needs no second lookup', async () => {
    const { self, present } = bench();
    self.verdict = SETTLED;
    expect([await present(), await present()]).toEqual(['paid', 'paid']);
    expect(self.mays).toHaveLength(1);
    expect(await present('another')).toBe('paid');
    expect(self.mays).toHaveLength(2);
  });

  test('that was used elsewhere or has expired ends with that reason, in the ledger too', async () => {
    const { self, present } = bench();
    self.verdict = FAILED;
    const end = await present();
    expect(end).toBeInstanceOf(PaymentRefused);
    expect(end).toMatchObject({ reason: 'payment_already_used', settlement: { success: false } });
    expect(self.ruledOut).toEqual([[known.id, 'payment_already_used']]);
  });

  test('is unknown when the evidence cannot be read, and its row stays as it is', async () => {
    const { self, present } = bench();
    self.verdict = { kind: 'unknown' };
    expect(await present()).toMatchObject({ status: 503, code: 'settlement_unknown', charged: 'unknown' });
    expect(self.ruledOut).toEqual([]);
  });

  test('is looked up once a second at most, and does not delay the lookup of another authorization', async () => {
    const { self, present, clock } = bench();
    self.verdict = { kind: 'unknown' };
    await present();
    await clock.advance(600);
    await present();
    await present('another');
    await clock.advance(399);
    await present();
    await clock.advance(1);
    await present();
    expect(self.mays).toEqual([true, false, true, false, true]);
  });

  test('is forgotten when the lookup ends it, so that its next presentation does not wait', async () => {
    const { self, present } = bench();
    self.verdict = FAILED;
    await present();
    await present();
    expect(self.mays).toEqual([true, true]);
  });
});

test('a bounded number of paid authorizations is remembered, and the oldest is looked up again', async () => {
  const { self, present } = bench();
  self.verdict = SETTLED;
  for (let at = 0; at < 10_000; at++) await present(`authorization ${at}`);
  await present('authorization 0');
  expect(self.mays).toHaveLength(10_000);
  await present('one too many');
  await present('authorization 1');
  expect(self.mays).toHaveLength(10_001);
  await present('authorization 0');
  expect(self.mays).toHaveLength(10_002);
});
