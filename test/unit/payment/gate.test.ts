import { request as httpRequest } from 'node:http';
import fastify, { type FastifyInstance } from 'fastify';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEndpoint } from '../../../src/catalogue/endpoint.ts';
import { AppError, BadParameter } from '../../../src/errors.ts';
import type { Presentation } from '../../../src/payment/call.ts';
import type { Purchase } from '../../../src/payment/checkout.ts';
import { createGate } from '../../../src/payment/gate.ts';
import { encodeHeader } from '../../../src/payment/protocols/x402/http.ts';
import type { Delivery } from '../../../src/payment/receipt.ts';
import { AnswerGone } from '../../../src/payment/receipt.ts';
import { PaymentRefused } from '../../../src/payment/refusal.ts';
import { createOffer, usdcCheckouts, usdcProtocol } from '../../../src/wiring/surfaces.ts';
import { TERMS } from '../../support/service/terms.ts';

const PATH = '/v1/paid/test/gate';
const HOW =
  'This answer costs 0.001 USDC on Arc: pay with any x402 v2 client that allows this asset in its spend controls, and repeat the request with PAYMENT-SIGNATURE. How to pay: https://data.percall.example/docs#paidTestGate.';
const RECEIPT = {
  success: true,
  payer: '0x01',
  transaction: '0x02',
  network: TERMS.network,
  amount: '1000',
} as const;
const endpoint = defineEndpoint({
  path: '/test/gate',
  access: 'paid',
  priceUsd: '0.001',
  label: 'Gate',
  summary: 'Tells a thing.',
  params: z.object({ a: z.string(), b: z.string() }),
  result: z.object({}),
  freeSummary: '/v1/test/free',
  example: { params: { a: 'x', b: 'y' }, result: {} },
  checkParams: ({ b }) => {
    if (b === 'unwatched') throw new BadParameter([{ path: 'b', message: 'is not sold' }]);
    if (b === 'away') throw new AppError(503, 'away', 'cannot be judged now');
  },
  run: async () => {
    throw new Error('the gate never runs an endpoint itself');
  },
});

let app: FastifyInstance;
let gate: ReturnType<typeof createGate<unknown>>;
let sell: (presentation: Presentation) => Promise<Delivery>;
let presented: Presentation[];
/** The first answer's connection is done with it. */
let closed: PromiseWithResolvers<void>;
beforeEach(async () => {
  presented = [];
  sell = async () => ({ body: Buffer.from('{"sold":true}'), receipt: RECEIPT, at: 1 });
  const purchase: Purchase<unknown> = async (of, requirement, presentation) => {
    expect([of, requirement]).toEqual([endpoint, createOffer(endpoint as never, TERMS).requirement]);
    presented.push(presentation);
    return sell(presentation);
  };
  const log = { error: () => {} };
  gate = createGate<unknown>({
    checkoutOf: usdcCheckouts((of) => createOffer(of, TERMS), purchase, null),
    protocol: usdcProtocol,
    log,
  });
  app = fastify();
  app.setErrorHandler((error, _request, reply) => {
    const known = error instanceof AppError ? error : null;
    return reply.code(known?.status ?? 500).send({ code: known?.code ?? 'internal' });
  });
  closed = Promise.withResolvers<void>();
  app.addHook('onRequest', async (_, reply) => void reply.raw.once('close', closed.resolve));
  app.route({ method: ['GET', 'HEAD'], url: PATH, ...gate.guard(endpoint as never) });
  await app.ready();
});
afterEach(() => app.close());

const ask = (url: string, headers: Record<string, string> = {}, method: 'GET' | 'HEAD' = 'GET') =>
  app.inject({ method, url, headers });
const CREDENTIAL = { accepted: { scheme: 'exact' }, payload: { signature: '0x' } };
const PAID = { 'payment-signature': encodeHeader({ x402Version: 2, ...CREDENTIAL }) };
const decoded = (header: unknown) => JSON.parse(Buffer.from(String(header), 'base64').toString());

describe('without a payment', () => {
  test('a priced route is 402 with its challenge, which no cache may keep, and a hint for people', async () => {
    const answer = await ask(`${PATH}?a=1&b=2`);
    expect([answer.statusCode, presented]).toEqual([402, []]);
    expect(answer.headers).toMatchObject({
      'cache-control': 'no-store',
      'content-type': 'application/json; charset=utf-8',
    });
    expect(decoded(answer.headers['payment-required'])).toMatchObject({
      error: 'Payment required',
      resource: { url: `${TERMS.publicOrigin}${PATH}?a=1&b=2` },
    });
    expect(answer.json()).toEqual({ hint: `Tells a thing. ${HOW} Free summary: GET /v1/test/free.` });
  });

  test.each([
    ['', 'a is missing, for example x; b is missing, for example y'],
    ['?a=1', 'b is missing, for example y'],
    ['?a=1&b=2&c=3', 'c: no such parameter; there are a, b'],
    ['?a=1&a=2&b=2', 'a: given more than once'],
    ['?a=1&b=unwatched', 'b: is not sold'],
  ])('the hint names what is wrong with %j, for which a payment would get 400', async (query, fault) => {
    const answer = await ask(PATH + query);
    expect([answer.statusCode, answer.json().hint]).toEqual([
      402,
      `${fault}. With a payment this request would be a 400, uncharged: mend it before you sign. ${HOW} Free summary: GET /v1/test/free.`,
    ]);
  });

  test('the hint stays short for a URL of thousands of unknown names', async () => {
    const names = Array.from({ length: 900 }, (_, n) => `x${n}=1`).join('&');
    expect((await ask(`${PATH}?${names}`)).payload.length).toBeLessThan(2000);
  });

  test('the hint names nothing while the parameters cannot be judged', async () => {
    expect((await ask(`${PATH}?a=1&b=away`)).json().hint).toMatch(/^Tells a thing\. /);
  });

  test('the hint of a route without a free summary names none', async () => {
    const { freeSummary: _, ...plain } = endpoint;
    app = fastify();
    app.route({ method: 'GET', url: '/plain', ...gate.guard(plain as never) });
    expect((await ask('/plain?a=1&b=2')).json().hint).toBe(`Tells a thing. ${HOW}`);
  });

  test('a client of x402 version 1 gets a 402 that names the header of version 2', async () => {
    const answer = await ask(PATH, { 'x-payment': 'x' });
    expect([answer.statusCode, decoded(answer.headers['payment-required']).error]).toEqual([
      402,
      'X-PAYMENT is x402 version 1; this service speaks version 2: send PAYMENT-SIGNATURE',
    ]);
  });

  test('HEAD is the same 402 without a body, and never sells, even with a payment', async () => {
    const answer = await ask(`${PATH}?a=1`, PAID, 'HEAD');
    expect([answer.statusCode, answer.body, presented]).toEqual([402, '', []]);
    const { headers } = await ask(`${PATH}?a=1`);
    for (const name of ['payment-required', 'content-type', 'content-length'])
      expect(answer.headers[name]).toBe(headers[name]);
  });
});

describe('a payment', () => {
  test('is passed on with its query and client, and buys an answer with a receipt that no shared cache may keep', async () => {
    const answer = await ask(`${PATH}?a=1&b=2`, PAID);
    expect([answer.statusCode, answer.body]).toEqual([200, '{"sold":true}']);
    expect(answer.headers).toMatchObject({
      'cache-control': 'private, no-store',
      'content-type': 'application/json; charset=utf-8',
    });
    expect(decoded(answer.headers['payment-response'])).toEqual(RECEIPT);
    expect(presented).toMatchObject([
      { credential: CREDENTIAL, query: { a: '1', b: '2' }, client: '127.0.0.1', identity: '127.0.0.1' },
    ]);
  });

  test('that is refused is 402 with the reason, and without a receipt where nothing was sent', async () => {
    sell = () => Promise.reject(new PaymentRefused('payment_already_used'));
    const answer = await ask(`${PATH}?a=1&b=2`, PAID);
    expect([answer.statusCode, decoded(answer.headers['payment-required']).error]).toEqual([
      402,
      'payment_already_used',
    ]);
    expect([answer.headers['payment-response'], answer.headers['cache-control']]).toEqual([undefined, 'no-store']);
  });

  test('whose settlement was refused says so in PAYMENT-RESPONSE as well', async () => {
    const settlement = { success: false, errorReason: 'x', transaction: '', network: TERMS.network } as const;
    sell = () => Promise.reject(new PaymentRefused('x', { settlement }));
    const answer = await ask(`${PATH}?a=1&b=2`, PAID);
    expect([answer.statusCode, decoded(answer.headers['payment-response'])]).toEqual([402, settlement]);
  });

  test('whose answer is gone has its receipt in PAYMENT-RESPONSE where the rail gives one, and no challenge to pay again', async () => {
    const receipt = { success: true, transaction: '', network: TERMS.network } as const;
    sell = () => Promise.reject(new AnswerGone(receipt));
    const gone = await ask(`${PATH}?a=1&b=2`, PAID);
    expect([gone.statusCode, gone.headers['payment-required']]).toEqual([410, undefined]);
    expect(decoded(gone.headers['payment-response'])).toEqual(receipt);
    sell = () => Promise.reject(new AnswerGone());
    expect((await ask(`${PATH}?a=1&b=2`, PAID)).headers['payment-response']).toBeUndefined();
  });

  test('whose call fails gets the call’s own error, not a challenge to pay again', async () => {
    sell = () => Promise.reject(new AppError(503, 'settlement_unknown', 'not known'));
    const answer = await ask(`${PATH}?a=1&b=2`, PAID);
    expect([answer.statusCode, answer.json()]).toEqual([503, { code: 'settlement_unknown' }]);
    expect(answer.headers['payment-required']).toBeUndefined();
  });

  test('whose client disconnects gets its signal aborted with 499, and an answered one does not', async () => {
    await app.listen({ port: 0, host: '127.0.0.1' });
    const address = app.server.address() as { port: number };
    const answered = await fetch(`http://127.0.0.1:${address.port}${PATH}?a=1&b=2`, { headers: PAID });
    expect(await answered.json()).toEqual({ sold: true });
    await closed.promise;
    expect(presented[0]?.signal.aborted).toBe(false);
    const [started, left] = [Promise.withResolvers<void>(), Promise.withResolvers<unknown>()];
    sell = ({ signal }) => {
      signal.addEventListener('abort', () => left.resolve(signal.reason), { once: true });
      started.resolve();
      return left.promise.then((reason) => Promise.reject(reason));
    };
    const call = httpRequest({ ...address, host: '127.0.0.1', path: `${PATH}?a=1&b=2`, headers: PAID });
    call.on('error', () => {});
    call.end();
    await started.promise;
    call.destroy();
    expect(await left.promise).toMatchObject({ status: 499, code: 'client_gone' });
  });
});

test('the gate recognises its own routes only', () => {
  const gated = gate.guard(endpoint as never);
  const other = async () => null;
  expect(gate.isGuarded(gated)).toBe(true);
  expect(gate.isGuarded({ ...gated, handler: other })).toBe(false);
  expect(gate.isGuarded({ ...gated, preHandler: [gated.preHandler] })).toBe(false);
  expect(gate.isGuarded({ handler: gated.handler })).toBe(false);
  expect(gate.isGuarded({ preHandler: (_request, _reply, done) => done(), handler: gated.handler })).toBe(false);
});

test('the handler behind the gate sells nothing and throws', async () => {
  const { handler } = gate.guard(endpoint as never);
  app = fastify();
  app.get('/open', handler);
  const answer = await app.inject({ method: 'GET', url: '/open', headers: PAID });
  expect([answer.statusCode, presented]).toEqual([500, []]);
});

test.each([
  ['GET', {}],
  ['GET', PAID],
  ['GET', { 'payment-signature': 'unreadable' }],
  ['HEAD', {}],
  ['HEAD', PAID],
] as const)('no %s request with %o reaches the handler behind the gate', async (method, headers) => {
  const reached: string[] = [];
  app = fastify();
  const { preHandler } = gate.guard(endpoint as never);
  app.route({ method: ['GET', 'HEAD'], url: PATH, preHandler, handler: async () => void reached.push('handler') });
  for (const refusal of [null, new PaymentRefused('x'), new AppError(503, 'busy', 'x'), new Error('bug')]) {
    sell = async () => {
      if (refusal) throw refusal;
      return { body: Buffer.from('{}'), receipt: RECEIPT, at: 1 };
    };
    const answer = await app.inject({ method, url: `${PATH}?a=1&b=2`, headers });
    expect([200, 402, 500, 503]).toContain(answer.statusCode);
  }
  expect(reached).toEqual([]);
});
