import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { AppError } from '../../../../src/errors.ts';
import { MAIN_ADDRESS } from '../../../../src/mcp/tool.ts';
import {
  LIGHTNING_ROUTE,
  LIGHTNING_TOOL,
  messageTo,
  named,
  USDC_ROUTE,
  USDC_TOOL,
  WAYS,
} from '../../../support/payment/checkout-calls.ts';
import { IN_BITCOIN, ORIGIN, openCheckouts, PAYMENTS, PLAIN, TOOL } from '../../../support/payment/checkout-world.ts';

const MISMATCH = 'invalid_exact_lnbtc_request_mismatch';

describe.each(WAYS)('%s', (_name, way) => {
  const payment = PAYMENTS[way.money];

  test('sells its answer for a payment, with a receipt, to the client that asks', async () => {
    const world = await openCheckouts();
    const paid = await world.buy(way);
    const { status, body, receipt, headers } = await world.call(way, { payment: paid });
    expect([status, body]).toEqual([200, '{"text":"answer to 1"}']);
    const [sale, ...more] = world.sales;
    const { money } = way;
    expect(sale).toMatchObject({ money, params: { a: '1', b: '2' }, client: '127.0.0.1', payload: paid.payload });
    expect(more).toEqual([]);
    if (way !== LIGHTNING_TOOL) expect(sale?.identity).toBe('127.0.0.1');
    expect(receipt).toMatchObject(
      money === 'usdc'
        ? { success: true, payer: '0x01', transaction: '0x02', network: PLAIN.network, amount: PLAIN.amount }
        : { success: true, transaction: expect.stringMatching(/^[0-9a-f]{64}$/), network: IN_BITCOIN.network },
    );
    // The answer is its buyer's alone.
    if (way.at === 'route')
      expect(headers).toMatchObject({
        'cache-control': 'private, no-store',
        'content-type': 'application/json; charset=utf-8',
      });
  });

  test('notes a delivery after the last byte, and one that cannot be noted costs the buyer nothing', async () => {
    const world = await openCheckouts();
    const first = await world.buy(way);
    world.events.splice(0);
    await world.call(way, { payment: first });
    await expect.poll(() => world.events).toEqual(['answered', 'noted']);
    const second = await world.buy(way);
    world.events.splice(0);
    world.cannotNoteDeliveries();
    expect((await world.call(way, { payment: second })).status).toBe(200);
    await expect.poll(() => world.events).toEqual(['answered', 'noted', 'a delivery was not noted']);
  });

  test.runIf(way.at === 'route')('notes no delivery where the answer could not be written', async () => {
    const world = await openCheckouts();
    const payment = await world.buy(way);
    world.sellsUnreadably();
    world.events.splice(0);
    expect(await world.call(way, { payment })).toMatchObject({ status: 500, code: 'internal', charged: 'unknown' });
    expect(world.events).toEqual(['answered']);
  });

  test('shows the receipt of an answer that is gone, where the rail gives one, and does not ask for payment again', async () => {
    const world = await openCheckouts();
    const receipt = { success: true, transaction: '', network: 'eip155:5042' } as const;
    world.answerIsGone(receipt);
    const gone = await world.call(way, { payment });
    expect(gone).toMatchObject({ status: 410, code: 'answer_gone', charged: true, receipt });
    expect(gone.accepts).toBeUndefined();
    world.answerIsGone(null);
    expect(await world.call(way, { payment })).toMatchObject({ status: 410, receipt: null });
  });

  test.each([
    ['a failure', new AppError(503, 'settlement_unknown', 'not known'), 503, 'settlement_unknown'],
    ['a bug', new Error('disk'), 500, 'internal'],
  ])('passes on %s of a sale, and does not ask for payment again', async (_title, error, status, code) => {
    const world = await openCheckouts();
    world.fails(error);
    const answer = await world.call(way, { payment });
    expect(answer).toMatchObject({ status, code, receipt: null });
    expect([answer.accepts, world.invoices()]).toEqual([undefined, []]);
  });

  test('tells the rail that the buyer has left', async () => {
    const world = await openCheckouts();
    expect(await world.leave(way)).toMatchObject({ status: 499, code: 'client_gone' });
  });
});

test.each(named(USDC_ROUTE, USDC_TOOL))(
  '%s chooses the rail by the terms that its buyer accepts',
  async (_name, way) => {
    const world = await openCheckouts();
    const accepted = { ...PLAIN, scheme: 'batch-settlement' };
    expect((await world.call(way, { payment: { ...PAYMENTS.usdc, accepted } })).status).toBe(200);
    expect(world.sales).toMatchObject([{ accepted }]);
  },
);

test('a route does not tell the rail that a buyer has left who has its answer', async () => {
  const world = await openCheckouts();
  const origin = await world.app.listen({ port: 0, host: '127.0.0.1' });
  const { url, headers } = messageTo(USDC_ROUTE, { payment: PAYMENTS.usdc });
  const answer = await fetch(`${origin}${url}`, { headers: { ...headers, connection: 'close' } });
  expect(await answer.json()).toEqual({ text: 'answer to 1' });
  await world.app.close();
  expect(world.sales.map(({ signal }) => signal.aborted)).toEqual([false]);
});

describe('a payment over Lightning', () => {
  test.each([
    ['another query', LIGHTNING_ROUTE, { params: { a: '2', b: '2' } }],
    ['another spelling of the query', LIGHTNING_ROUTE, { params: { b: '2', a: '1' } }],
    ['another method', LIGHTNING_ROUTE, { method: 'POST' }],
    ['other arguments', LIGHTNING_TOOL, { params: { a: '2', b: '2' } }],
    ['another address of the server', LIGHTNING_TOOL, { address: MAIN_ADDRESS }],
  ] as const)('buys nothing with %s, and then what it was made for', async (_title, way, other) => {
    const world = await openCheckouts();
    const payment = await world.buy(way);
    const refused = await world.call(way, { ...other, payment });
    expect([refused.status, refused.error]).toEqual([402, MISMATCH]);
    expect((await world.call(way, { payment })).status).toBe(200);
  });

  test('of a tool binds the server, the tool and the arguments as they came', async () => {
    const world = await openCheckouts();
    const { accepts: [entry] = [] } = await world.call(LIGHTNING_TOOL, { params: { b: 'é', a: 1 } });
    const canonical =
      '{"arguments":{"a":1,"b":"é"},"domain":"x402:exact:lnbtc:bolt11:mcp:1","metadata":[],' +
      `"method":"tools/call","name":"${TOOL}","server":"${ORIGIN}/mcp/lightning"}`;
    expect(entry?.extra).toMatchObject({
      requestHash: createHash('sha256').update(canonical).digest('hex'),
      requestBindingProfile: 'mcp:1',
      requestBindingParams: { server: `${ORIGIN}/mcp/lightning`, metadata: [] },
    });
  });

  test.each(named(LIGHTNING_ROUTE, LIGHTNING_TOOL))('that holds odd members is refused by %s', async (_name, way) => {
    const world = await openCheckouts();
    // JSON can say that an object has another `toString`.
    const odd = { toString: 1, valueOf: 1 };
    const accepted = { ...IN_BITCOIN, amount: odd, payTo: odd, maxTimeoutSeconds: 300, extra: { invoice: 'lnbc1' } };
    const { status, error } = await world.call(way, {
      payment: { x402Version: 2, accepted, payload: { preimage: odd } },
    });
    expect([status, error]).toEqual([402, 'invalid_exact_lnbtc_amount_mismatch']);
  });
});

test('a route gives its open offer again to a client that asks twice, and a tool never does', async () => {
  const world = await openCheckouts();
  const invoice = async (way: typeof LIGHTNING_ROUTE) => (await world.call(way)).accepts?.[0]?.extra.invoice;
  expect(await invoice(LIGHTNING_ROUTE)).toBe(await invoice(LIGHTNING_ROUTE));
  expect(await invoice(LIGHTNING_TOOL)).not.toBe(await invoice(LIGHTNING_TOOL));
  expect(new Set(world.invoices()).size).toBe(3);
});

test.each([
  ['Lightning by its network', PAYMENTS.lightning, 'lightning'],
  ['USDC by its network', PAYMENTS.usdc, 'usdc'],
  ['USDC with a network that is no text', { ...PAYMENTS.usdc, accepted: { ...PLAIN, network: 7 } }, 'usdc'],
])('a tool takes a payment as one of %s, at either address', async (_title, payment, money) => {
  const world = await openCheckouts();
  world.refuses('expired');
  for (const way of [USDC_TOOL, LIGHTNING_TOOL]) await world.call(way, { payment });
  expect(world.sales.map((sale) => sale.money)).toEqual([money, money]);
});

test.each([
  ['without terms', { ...PAYMENTS.lightning, accepted: null }],
  ['that is no object', 'nonsense'],
])('a tool offers USDC after a payment %s', async (_title, payment) => {
  const world = await openCheckouts();
  const { error, accepts, receipt } = await world.call(LIGHTNING_TOOL, { payment });
  expect([accepts, receipt]).toEqual([[PLAIN], null]);
  expect(error).toMatch(/^invalid_/);
});
