import { describe, expect, test } from 'vitest';
import { AppError, UpstreamFailed } from '../../../../src/errors.ts';
import {
  CHAIN_AWAY,
  CLIENT,
  LACKS_MONEY,
  NONCE_USED,
  openSale,
  PRICE,
  storeFails,
} from '../../../support/payment/sale-world.ts';
import { newKey } from '../../../support/usdc/payments.ts';

const UNKNOWN = { status: 503, code: 'settlement_unknown', charged: 'unknown', retryAfterSeconds: 2 };
const SOLD = { answer: { tag: 'none', run: 1 } };

describe('once an intent is stored', () => {
  test.each([new Error('a bug'), new UpstreamFailed('chain', 'away'), LACKS_MONEY])(
    'whatever fails leaves the outcome unknown, with its cause, and asks for the same payment again: %s',
    async (cause) => {
      const { sell, says } = openSale();
      says.settles = cause;
      const answer = await sell();
      expect(answer).toMatchObject({ ...UNKNOWN, cause });
      expect(answer.message).toContain('present the same payment again');
    },
  );

  test.each(['unknown', 'row gone'] as const)('a settlement without an end is unknown: %s', async (settles) => {
    const { sell, says } = openSale();
    says.settles = settles;
    expect(await sell()).toMatchObject(UNKNOWN);
  });

  test('a payment whose outcome is unknown is looked up each time it is presented, and delivered where it has paid', async () => {
    const { sell, says, asked, paymentThatIs } = openSale();
    const { payment, first } = await paymentThatIs('unknown');
    expect(await first).toMatchObject(UNKNOWN);
    asked.length = 0;
    for (const looksUp of ['unknown', 'row gone', new Error('the disk is away')] as const) {
      says.looksUp = looksUp;
      expect(await sell({}, payment)).toMatchObject(UNKNOWN);
    }
    says.looksUp = PRICE;
    expect(await sell({}, payment)).toMatchObject(SOLD);
    expect(asked).toEqual(Array(4).fill(['row', 'look up']).flat());
  });

  test('a payment whose outcome is unknown is refused where the look shows that it failed', async () => {
    const { sell, says, latch, paymentThatIs } = openSale();
    const { payment } = await paymentThatIs('unknown');
    says.looksUp = 'used elsewhere';
    expect(await sell({}, payment)).toMatchObject({ reason: NONCE_USED.reason, settlement: { success: false } });
    expect(latch.runs()).toBe(1);
  });
});

describe('a reservation that cannot be given back', () => {
  test('leaves the outcome unknown, because another process may be selling for the same payment', async () => {
    const { sell, says, store, alerts } = openSale();
    store.release = storeFails();
    says.verify = CHAIN_AWAY;
    expect(await sell()).toMatchObject({ ...UNKNOWN, cause: { cause: CHAIN_AWAY } });
    expect(alerts).toEqual(['a reservation was not released']);
  });

  test('takes back what was counted for it, because nothing was sent', async () => {
    const { sell, store, moody, taken } = openSale();
    store.release = storeFails();
    moody.fail();
    expect(await sell({ of: moody })).toMatchObject(UNKNOWN);
    expect(taken.back).toBe(1);
  });

  test('because another process took it over is not said to have cost nothing', async () => {
    const { sell, says, store, alerts } = openSale();
    store.release = async () => false;
    says.verify = CHAIN_AWAY;
    expect(await sell()).toMatchObject(UNKNOWN);
    expect(alerts).toEqual([]);
  });

  test('after a store that may have kept the intent leaves the outcome unknown, and what was counted for it', async () => {
    const { sell, store, taken, failures } = openSale();
    const cause = new AppError(503, 'ledger_unavailable', 'the disk is away');
    [store.release, store.move] = [storeFails(), storeFails(cause)];
    expect(await sell()).toMatchObject({ ...UNKNOWN, cause });
    expect([taken.back, failures.hasFailed(CLIENT)]).toEqual([0, false]);
  });
});

describe('a ledger that does not answer before the reservation or in it leaves the outcome unknown', () => {
  const AWAY = { status: 503, code: 'ledger_unavailable', charged: 'unknown', retryAfterSeconds: 5 };

  test('in the insert, while another presentation of the same payment is charged', async () => {
    const { sell, sign, row, store } = openSale();
    const payment = sign();
    const { reserve } = store;
    store.reserve = async () => {
      store.reserve = reserve;
      expect(await sell({}, payment)).toMatchObject(SOLD);
      return storeFails()();
    };
    expect(await sell({}, payment)).toMatchObject(AWAY);
    expect(await row(payment)).toMatchObject({ state: 'settled', charged: PRICE });
  });

  test.each(['find', 'findByIdentifier'] as const)('in the read of what is known: %s', async (read) => {
    const { sell, sign, store, clock } = openSale();
    const cause = new Error('disk');
    store[read] = storeFails(cause);
    expect(await sell({}, sign({ identifier: 'order-0123456789abcdef' }))).toMatchObject({ ...AWAY, cause });
    // No timer is left.
    expect(clock.pendingSleeps()).toEqual([]);
  });

  test('in the read whether the payer has paid before', async () => {
    const { sell, store, failures } = openSale();
    store.hasSettled = storeFails();
    failures.beginSettlement('some payer', CLIENT)(true);
    expect(await sell()).toMatchObject(AWAY);
  });

  test('in the reads of the payer’s unknown payments', async () => {
    const { sell, sign, says, store } = openSale();
    const key = newKey();
    says.settles = 'unknown';
    for (let at = 0; at < 2; at++) await sell({}, sign({ key }));
    store.get = storeFails();
    expect(await sell({}, sign({ key }))).toMatchObject(AWAY);
  });

  test('in 4 s, and a later answer changes nothing', async () => {
    const { sell, sign, row, store, clock } = openSale();
    const { promise, resolve } = Promise.withResolvers<null>();
    const asked = Promise.withResolvers<void>();
    store.find = () => {
      asked.resolve();
      return promise;
    };
    const payment = sign();
    const answer = sell({}, payment);
    await asked.promise;
    await clock.advance(3999);
    expect(clock.pendingSleeps()).toEqual([1]);
    await clock.advance(1);
    resolve(null);
    const cause = new Error('the ledger did not answer in 4000 ms');
    expect(await answer).toMatchObject({ ...AWAY, cause });
    expect([await row(payment), clock.pendingSleeps()]).toEqual([null, []]);
  });
});
