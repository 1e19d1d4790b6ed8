import { describe, expect, test } from 'vitest';
import { AppError } from '../../../../src/errors.ts';
import { ROUTES } from '../../../support/payment/checkout-calls.ts';
import { openCheckouts, PAYMENTS, UNREADABLE } from '../../../support/payment/checkout-world.ts';

const GONE = {
  status: 404,
  code: 'no_such_route',
  detail:
    'This route is not sold here. GET /v1/paid lists those that are sold in USDC, GET /v1/lightning those in bitcoin.',
};

describe.each(ROUTES)('%s that is not sold any more', (_name, way) => {
  const payment = PAYMENTS[way.money];

  test.each([
    ['for its price', {}],
    ['with faulty parameters, which nobody judges', { params: { a: '1' } }],
  ])('asks for no payment where it is asked %s', async (_title, request) => {
    const world = await openCheckouts();
    const call = await world.withdraw();
    const answer = await call(way, request);
    expect(answer).toMatchObject({ ...GONE, charged: false, receipt: null });
    expect([answer.accepts, world.invoices(), world.offered, world.sales]).toEqual([undefined, [], [], []]);
  });

  test('still gives the answer to a payment from before', async () => {
    const world = await openCheckouts();
    const paid = await world.buy(way);
    const call = await world.withdraw();
    const { status, body, receipt } = await call(way, { payment: paid });
    expect([status, body, receipt]).toEqual([
      200,
      '{"text":"answer to 1"}',
      expect.objectContaining({ success: true }),
    ]);
    expect(world.sales).toMatchObject([{ money: way.money, params: { a: '1', b: '2' }, payload: paid.payload }]);
  });

  test('makes no new offer after a refusal, and shows the receipt of one over Lightning', async () => {
    const world = await openCheckouts();
    world.refuses('expired');
    const call = await world.withdraw();
    for (const refused of [payment, UNREADABLE[way.money]]) {
      const { receipt, ...answer } = await call(way, { payment: refused });
      expect(answer).toMatchObject(GONE);
      if (way.money === 'usdc') expect(receipt).toBeNull();
      else expect(receipt).toMatchObject({ success: false });
    }
    expect(world.invoices()).toEqual([]);
  });

  test('says what the service lacks where that is why', async () => {
    const world = await openCheckouts();
    const call = await world.withdraw(() => new AppError(501, 'not_configured', 'there is no chain here'));
    const expected = { status: 501, code: 'not_configured', detail: 'there is no chain here' };
    expect(await call(way)).toMatchObject(expected);
    world.refuses('expired');
    expect(await call(way, { payment })).toMatchObject(expected);
  });
});
