import fastify, { type FastifyInstance } from 'fastify';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { defineEndpoint } from '../../../../../src/catalogue/endpoint.ts';
import { AppError, BadParameter } from '../../../../../src/errors.ts';
import type { Ask } from '../../../../../src/payment/call.ts';
import { createGate } from '../../../../../src/payment/gate.ts';
import { createLightningCheckout } from '../../../../../src/payment/lightning/rail.ts';
import { MAINNET } from '../../../../../src/payment/lightning/terms.ts';
import { usdcProtocol, wordsOfRefusal } from '../../../../../src/wiring/surfaces.ts';
import { proofHeader } from '../../../../support/lightning/lightning-buyer.ts';
import { openRailBench, type RailBench } from '../../../../support/lightning/rail-bench.ts';

const ORIGIN = 'https://api.example.com';
const CHAIN = { name: 'Arc', isPlayMoney: false };
const PATH = '/v1/lightning/test/rail';

let bench: RailBench;
let app: FastifyInstance;
/** Whether the protocol of a refused payment has no 402 without an offer. */
let needsQuote: boolean;
let gate: ReturnType<typeof createGate<null>>;
let checkoutOf: (of: RailBench['endpoint']) => ReturnType<typeof createLightningCheckout<null>>;
const logged: string[] = [];

beforeEach(async () => {
  logged.splice(0);
  bench = await openRailBench();
  const log = { error: (_: object, message: string) => void logged.push(message) };
  const { offers, redeemed } = bench;
  const selling = { offers, redeem: redeemed, sources: null, network: MAINNET.id, publicOrigin: ORIGIN };
  needsQuote = false;
  const protocol = { ...usdcProtocol, needsQuote: () => needsQuote };
  checkoutOf = (of) => createLightningCheckout(of, { ...selling, protocol, words: wordsOfRefusal, chain: CHAIN });
  gate = createGate<null>({ checkoutOf: checkoutOf as never, protocol: usdcProtocol, log });
  app = fastify();
  app.setErrorHandler((error, _request, reply) => {
    const known = error instanceof AppError ? error : null;
    return reply.code(known?.status ?? 500).send({ code: known?.code ?? 'internal', detail: (error as Error).message });
  });
  const judged = defineEndpoint({
    ...bench.endpoint,
    path: '/test/judged',
    priceUsd: '0.016',
    example: { params: { tag: 'a' }, result: { text: 'x' } },
    checkParams: () => {
      throw new BadParameter([{ path: 'tag', message: 'is not sold' }]);
    },
    run: async () => ({ text: 'x' }),
  });
  app.route({ method: ['GET', 'POST'], url: PATH, ...gate.guard(bench.endpoint) });
  app.route({ method: 'GET', url: '/v1/lightning/test/judged', ...gate.guard(judged as typeof bench.endpoint) });
  await app.ready();
});
afterEach(async () => {
  await app.close();
  await bench.close();
});

const get = (url: string, headers: Record<string, string> = {}) => app.inject({ method: 'GET', url, headers });
const json = (header: unknown) => JSON.parse(Buffer.from(String(header), 'base64').toString());

describe('without a payment,', () => {
  test('the answer is a 402 whose header and body make the same offer, which no cache may keep', async () => {
    const answer = await get(`${PATH}?tag=a`);
    const { accepts, error, resource } = json(answer.headers['payment-required']);
    expect([answer.statusCode, error, resource.url]).toEqual([402, 'Payment required', `${ORIGIN}${PATH}?tag=a`]);
    expect(answer.json().accepts).toEqual(accepts);
    expect(answer.headers).toMatchObject({
      'cache-control': 'no-store',
      'content-type': 'application/json; charset=utf-8',
    });
    expect(bench.node.invoices.map(({ text }) => text)).toEqual([accepts[0].extra.invoice]);
  });

  test('a payment of version 1 gets a 402 that names the version that is spoken here', async () => {
    const answer = await get(`${PATH}?tag=a`, { 'x-payment': 'x' });
    expect([answer.statusCode, answer.json().error]).toEqual([
      402,
      'X-PAYMENT is x402 version 1; this service speaks version 2: send PAYMENT-SIGNATURE',
    ]);
  });

  test('a client that asks twice gets one invoice, and another one after a refused payment', async () => {
    const invoices = [];
    for (const headers of [{}, {}, { 'payment-signature': 'e30=' }])
      invoices.push((await get(`${PATH}?tag=a`, headers)).json().accepts[0].extra.invoice);
    expect([invoices[0] === invoices[1], invoices[0] === invoices[2]]).toEqual([true, false]);
  });

  test('the client is the address of the request', async () => {
    bench.buyers.add('127.0.0.1');
    const seen: string[] = [];
    const { has } = bench.buyers;
    bench.buyers.has = (client) => {
      seen.push(client);
      return has(client);
    };
    await get(`${PATH}?tag=a`);
    expect(seen).toEqual(['127.0.0.1']);
  });

  test.each<[string, string, Record<string, string>, string]>([
    ['an unknown parameter', `${PATH}?tag=a&more=1`, {}, 'bad_parameter'],
    ['a missing one', PATH, {}, 'bad_parameter'],
    ['a broken escape', `${PATH}?tag=%zz`, {}, 'bad_parameter'],
    ['parameters that the endpoint does not sell', '/v1/lightning/test/judged?tag=a', {}, 'bad_parameter'],
    ['a body that is said to come', `${PATH}?tag=a`, { 'content-length': '2' }, 'bad_parameter'],
    ['a body of unknown length', `${PATH}?tag=a`, { 'transfer-encoding': 'chunked' }, 'bad_parameter'],
  ])('%s is 400 before anything is made', async (_, url, headers, code) => {
    const answer = await app.inject({
      method: 'GET',
      url,
      headers,
      ...('content-length' in headers && { payload: '{}' }),
    });
    expect([answer.statusCode, answer.json().code]).toEqual([400, code]);
    expect([bench.node.invoices, bench.handler.runs]).toEqual([[], []]);
  });

  test('a refusal says in words what is wrong', async () => {
    expect((await get(`${PATH}?tag=%zz`)).json().detail).toBe('this request target cannot be bound into an invoice');
    expect((await get(`${PATH}?tag=a`, { 'transfer-encoding': 'chunked' })).json().detail).toBe(
      'a data route takes no body; send parameters in the query',
    );
    expect((await get('/v1/lightning/test/judged?tag=a')).json().detail).toBe('tag: is not sold');
  });

  test.each(['*', 'https://api.example.com', 'https://api.example.com?tag=a'])(
    'the target %s, which has no path, is refused: an invoice would bind another request',
    (target) => {
      const asked = { method: 'GET', target, query: { tag: 'a' }, hasBody: false };
      const asker = { client: () => '192.0.2.1', identity: () => '192.0.2.1' };
      const ask: Ask = { ...asked, ...asker, signal: () => new AbortController().signal };
      expect(() => checkoutOf(bench.endpoint).read(ask)).toThrow(
        new BadParameter([{ path: '', message: 'this request target cannot be bound into an invoice' }]),
      );
    },
  );

  test('an empty body counts as no body', async () => {
    expect((await get(`${PATH}?tag=a`, { 'content-length': '0' })).statusCode).toBe(402);
  });
});

describe('with a payment,', () => {
  const buy = () => bench.buy(bench.order('a'));

  test('the answer leaves with its receipt, for its buyer alone, and is noted as delivered', async () => {
    const { header, key } = await buy();
    const answer = await get(`${PATH}?tag=a`, { 'payment-signature': header });
    expect([answer.statusCode, answer.body]).toEqual([200, '{"text":"answer to a"}']);
    expect(json(answer.headers['payment-response'])).toEqual({
      success: true,
      transaction: key.paymentHash.toString('hex'),
      network: MAINNET.id,
    });
    expect(answer.headers).toMatchObject({
      'cache-control': 'private, no-store',
      'content-type': 'application/json; charset=utf-8',
    });
    await expect.poll(async () => (await bench.real.findClaim(key))?.grant?.state).toBe('delivered');
    expect(logged).toEqual([]);
  });

  test('a delivery that cannot be noted costs the buyer nothing, and is logged', async () => {
    const { header } = await buy();
    bench.faults.delivered = async () => Promise.reject(new Error('disk'));
    expect((await get(`${PATH}?tag=a`, { 'payment-signature': header })).statusCode).toBe(200);
    await expect.poll(() => logged).toEqual(['a delivery was not noted']);
  });

  test('another method makes another request', async () => {
    const { header } = await buy();
    const answer = await app.inject({ method: 'POST', url: `${PATH}?tag=a`, headers: { 'payment-signature': header } });
    expect([answer.statusCode, answer.json().error]).toEqual([402, 'invalid_exact_lnbtc_request_mismatch']);
  });

  test('a refused payment gets the reason and a fresh offer', async () => {
    const { header } = await buy();
    const answer = await get(`${PATH}?tag=b`, { 'payment-signature': header });
    expect(answer.statusCode).toBe(402);
    expect(json(answer.headers['payment-response'])).toEqual({
      success: false,
      errorReason: 'invalid_exact_lnbtc_request_mismatch',
      transaction: '',
      network: MAINNET.id,
    });
    const { error, accepts } = answer.json();
    expect([error, accepts.length]).toEqual(['invalid_exact_lnbtc_request_mismatch', 1]);
  });

  test('a refused payment whose protocol needs an offer gets the offer’s error and the reason where none can be made', async () => {
    const { header } = await buy();
    needsQuote = true;
    const again = await get(`${PATH}?tag=b`, { 'payment-signature': header });
    expect([again.statusCode, again.json().accepts.length]).toEqual([402, 1]);
    bench.quota.set({ all: 2_000_000, offered: 0 });
    const answer = await get(`${PATH}?tag=b`, { 'payment-signature': header });
    expect([answer.statusCode, answer.json().code]).toEqual([503, 'reply_store_full']);
    expect(answer.json().detail).toContain('invalid_exact_lnbtc_request_mismatch');
    expect(json(answer.headers['payment-response']).errorReason).toBe('invalid_exact_lnbtc_request_mismatch');
  });

  test('a refused payment gets the reason also where no offer can be made', async () => {
    const { header } = await buy();
    bench.quota.set({ all: 2_000_000, offered: 0 });
    const answer = await get(`${PATH}?tag=b`, { 'payment-signature': header });
    const { error, accepts, priceUsd, btcUsd } = answer.json();
    expect([answer.statusCode, error, accepts, priceUsd, btcUsd]).toEqual([
      402,
      'invalid_exact_lnbtc_request_mismatch',
      [],
      '0.016',
      null,
    ]);
  });

  test('a payment that cannot be read is refused, whatever its members are', async () => {
    // JSON can say that an object has another `toString`.
    const textless = { toString: 1, valueOf: 1 };
    const accepted = {
      scheme: 'exact',
      network: MAINNET.id,
      asset: 'BTC',
      payTo: textless,
      extra: { invoice: 'lnbc1' },
    };
    const header = proofHeader({ ...accepted, amount: textless, maxTimeoutSeconds: 300 }, textless);
    const answer = await get(`${PATH}?tag=a`, { 'payment-signature': header });
    expect([answer.statusCode, answer.json().error]).toEqual([402, 'invalid_exact_lnbtc_amount_mismatch']);
  });

  test('a failure of ours is not answered as a refusal', async () => {
    const { header } = await buy();
    bench.faults.findClaim = async () => Promise.reject(new Error('disk'));
    const answer = await get(`${PATH}?tag=a`, { 'payment-signature': header });
    expect([answer.statusCode, answer.json().code]).toEqual([500, 'internal']);
    expect(answer.headers['payment-required']).toBeUndefined();
  });
});
