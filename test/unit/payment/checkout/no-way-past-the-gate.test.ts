import fastify from 'fastify';
import { expect, onTestFinished, test } from 'vitest';
import { AppError } from '../../../../src/errors.ts';
import { messageTo, USDC_ROUTE } from '../../../support/payment/checkout-calls.ts';
import { openCheckouts, PAYMENTS, UNREADABLE } from '../../../support/payment/checkout-world.ts';

test('the gate recognises its own routes only', async () => {
  const { gate, endpoint } = await openCheckouts();
  const gated = gate.guard(endpoint);
  const other = async () => null;
  expect(gate.isGuarded(gated)).toBe(true);
  expect(gate.isGuarded({ ...gated, handler: other })).toBe(false);
  expect(gate.isGuarded({ ...gated, preHandler: [gated.preHandler] })).toBe(false);
  expect(gate.isGuarded({ handler: gated.handler })).toBe(false);
  expect(gate.isGuarded({ preHandler: (_request, _reply, done) => done(), handler: gated.handler })).toBe(false);
});

test('the handler behind the gate sells nothing and throws', async () => {
  const { gate, endpoint, sales, runs } = await openCheckouts();
  const app = fastify();
  onTestFinished(() => app.close());
  app.get('/open', gate.guard(endpoint).handler);
  const answer = await app.inject({ ...messageTo(USDC_ROUTE, { payment: PAYMENTS.usdc }), url: '/open' });
  expect([answer.statusCode, sales, runs]).toEqual([500, [], []]);
});

test.each([
  ['GET', 'without a payment', undefined],
  ['GET', 'with a payment', PAYMENTS.usdc],
  ['GET', 'with an unreadable payment', UNREADABLE.usdc],
  ['HEAD', 'without a payment', undefined],
  ['HEAD', 'with a payment', PAYMENTS.usdc],
] as const)('no %s request %s reaches the handler behind the gate', async (method, _title, payment) => {
  const world = await openCheckouts();
  const reached: string[] = [];
  const app = fastify();
  onTestFinished(() => app.close());
  const { preHandler } = world.gate.guard(world.endpoint);
  const message = messageTo(USDC_ROUTE, { method, payment });
  app.route({ method: ['GET', 'HEAD'], url: '/*', preHandler, handler: async () => void reached.push('handler') });
  const outcomes = [
    () => {},
    () => world.refuses('x'),
    () => world.fails(new AppError(503, 'busy', 'x')),
    () => world.fails(new Error('bug')),
  ];
  for (const set of outcomes) {
    set();
    expect([200, 402, 500, 503]).toContain((await app.inject(message)).statusCode);
  }
  expect(reached).toEqual([]);
});
