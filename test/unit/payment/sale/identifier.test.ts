import { describe, expect, test } from 'vitest';
import type { Authorization } from '../../../../src/payment/settler.ts';
import { openSale, type Standing } from '../../../support/payment/sale-world.ts';

const OTHER = '192.0.2.2';
const IDENTIFIER = 'order-0123456789abcdef';
const USED = { name: 'PaymentRefused', reason: 'payment_already_used' };
const CONFLICT = { status: 409, code: 'payment_identifier_conflict', charged: false };
const MOVED = { ...CONFLICT, charged: 'unknown' };
const SOLD = { answer: { tag: 'none', run: 1 } };

describe('a payment identifier', () => {
  test('stands for one payload: with another payment or another request it is a conflict', async () => {
    const { sell, sign, asked } = openSale();
    const payment = sign({ identifier: IDENTIFIER });
    expect(await sell({}, payment)).toMatchObject(SOLD);
    asked.length = 0;
    expect(await sell({}, sign({ identifier: IDENTIFIER }))).toMatchObject(CONFLICT);
    // It was paid for its own request: what became of that is not said to be nothing.
    expect(await sell({ query: { tag: 'another' } }, payment)).toMatchObject(MOVED);
    expect(asked).toEqual(['row', 'terms', 'identifier', 'row', 'identifier']);
  });

  test('that another payment took meanwhile is a conflict too', async () => {
    const { sell, sign, hold } = openSale();
    const { arrived, go } = hold('payer');
    const slow = sell({}, sign({ identifier: IDENTIFIER }));
    await arrived;
    expect(await sell({}, sign({ identifier: IDENTIFIER }))).toMatchObject(SOLD);
    go();
    expect(await slow).toMatchObject(CONFLICT);
  });

  test('that its own payment took for another request meanwhile is a conflict that says unknown', async () => {
    const { sell, sign, store } = openSale();
    const payment = sign({ identifier: IDENTIFIER });
    const { findByIdentifier } = store;
    store.findByIdentifier = async (hash) => {
      store.findByIdentifier = findByIdentifier;
      expect(await sell({ client: OTHER }, payment)).toMatchObject(SOLD);
      return findByIdentifier(hash);
    };
    expect(await sell({ query: { tag: 'another' } }, payment)).toMatchObject(MOVED);
  });

  test('is looked for only where one came: payments without it are no conflict', async () => {
    const { sell, asked } = openSale();
    for (let at = 0; at < 2; at++) expect(await sell()).toHaveProperty('answer');
    expect(asked).not.toContain('identifier');
  });

  test('that is malformed is refused before anything is asked', async () => {
    const { sell, sign, asked } = openSale();
    const refusal = { status: 400, code: 'payment_identifier_malformed', charged: false };
    expect(await sell({}, sign({ identifier: 'short' }))).toMatchObject(refusal);
    expect(asked).toEqual([]);
  });

  test.each<[Standing | 'new', object]>([
    ['new', CONFLICT],
    ['failed', CONFLICT],
    ['reverted', MOVED],
    ['reserved', MOVED],
    ['settling', MOVED],
    ['unknown', MOVED],
    ['settled', MOVED],
  ])(
    'of another payment is a conflict for one that is %s; its money may have moved in any state but these',
    async (state, conflict) => {
      const { sell, sign, paymentThatIs } = openSale();
      await sell({}, sign({ identifier: IDENTIFIER }));
      const { payment, go } = state === 'new' ? { payment: sign(), go: () => {} } : await paymentThatIs(state);
      expect(await sell({}, sign({ like: payment, identifier: IDENTIFIER }))).toMatchObject(conflict);
      go();
    },
  );

  test.each<[string, Partial<Authorization>, Parameters<typeof openSale>[0]]>([
    ['payer', { from: Buffer.alloc(20, 2) }, {}],
    ['nonce', { nonce: Buffer.alloc(32, 3) }, {}],
    ['network', {}, { network: 'eip155:1' }],
    ['contract', {}, { contract: `0x${'01'.repeat(20)}` }],
  ])(
    'of a payment with another %s is a conflict, also where the row is from before payments were hashed',
    async (_, change, options) => {
      const { sell, sign, rewrite, database } = openSale();
      const payment = sign({ identifier: IDENTIFIER });
      await sell({}, payment);
      const elsewhere = openSale({ ...options, over: database });
      const other = sign({ like: payment, change, identifier: IDENTIFIER });
      expect(await elsewhere.sell({}, other)).toMatchObject(CONFLICT);
      rewrite('authorization_hash = NULL');
      expect(await elsewhere.sell({}, other)).toMatchObject(CONFLICT);
    },
  );
});

describe('a payment that answers a challenge', () => {
  test('that was made up is refused after one read of the ledger, as a payment without a challenge is', async () => {
    const { sell, sign, asked } = openSale();
    const payment = sign({ challenge: { id: 'made up', isMadeUp: true } });
    expect(await sell({}, payment)).toMatchObject({ reason: 'invalid_challenge' });
    expect(asked).toEqual(['row', 'challenge']);
  });

  test('is looked for under its challenge once that is good, and judged by its row once it is known', async () => {
    const { sell, sign, row, asked } = openSale();
    const payment = sign({ challenge: { id: 'a' } });
    expect(await sell({}, payment)).toMatchObject(SOLD);
    expect(asked.slice(0, 4)).toEqual(['row', 'challenge', 'terms', 'identifier']);
    expect(await row(payment)).toMatchObject({ protocol: 'mpp' });
    asked.length = 0;
    const madeUp = sign({ like: payment, challenge: { id: 'a', isMadeUp: true } });
    expect(await sell({ client: OTHER }, madeUp)).toMatchObject(SOLD);
    expect(asked).toEqual(['row', 'identifier']);
  });

  test('is used where another payment has answered that challenge: it buys one answer', async () => {
    const { sell, sign } = openSale();
    await sell({}, sign({ challenge: { id: 'a' } }));
    expect(await sell({}, sign({ challenge: { id: 'a' } }))).toMatchObject(USED);
  });
});
