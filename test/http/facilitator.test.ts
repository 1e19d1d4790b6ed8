import { readdirSync, readFileSync } from 'node:fs';
import { request } from 'node:http';
import { dirname, join } from 'node:path';
import { HTTPFacilitatorClient } from '@x402/core/server';
import type { PaymentPayload, PaymentRequirements } from '@x402/core/types';
import type { FastifyInstance, InjectOptions } from 'fastify';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { buildFacilitatorApp, facilitatorConfig } from '../../scripts/lib/lightning/facilitator-app.ts';
import { lightningProof } from '../../scripts/lib/lightning/lightning-proofs.ts';
import { createLogger } from '../../src/lib/common.ts';
import { makeKnown, type OpenFacilitator, openFacilitator, payeeKey } from '../support/lightning/facilitator.ts';
import { formsOf } from '../support/lightning/settle-calls.ts';
import { captureLog, listen } from './harness.ts';

const NOW = 1_700_000_000;
const NETWORK = 'lnbtc:000000000019d6689c085ae165831e93';
const OWN_SECRET = Buffer.alloc(32, 1);
const OWN = '031b84c5567b126440995d3ed5aaba0565d71e1834604819ff9c17f5e9d5dd078f';

/** The scheme specification's own vector. */
const VECTOR = {
  invoice:
    'lnbc250n1pj48ugqpp54y3u9s8ylemsv8l3ewyzzu0klhujvuvmkl6llchq23vy8rzjsf0qsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygshp5p4nz8am4uqj4q8a87z3sk4x6yk4dv2mvel34epw68qqkwy0xcqvqxqzfvcqpjr4rx6ls6j5rpwknuea64evlk7yfx56wmqcer5eerekdsn9tlv6v4ex9mlz5dtm9qapl3svwlqcf7837dmjkru9z9w4h2rvm0md52w2sqxrwu5f',
  requestHash: '0d6623f775e025501fa7f0a30b54da25aad62b6ccfe35c85da38016711e6c018',
  payTo: '0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798',
  preimage: '0001020304050607080900010203040506070809000102030405060708090102',
  paymentHash: 'a923c2c0e4fe77061ff1cb882171f6fdf926719bb7f5ffe2e05458438c52825e',
};

let opened: OpenFacilitator;
let app: FastifyInstance;
let lines: Record<string, unknown>[];

function open(options: Partial<Parameters<typeof openFacilitator>[0]>, env: Record<string, string> = {}): void {
  opened = openFacilitator({ startMs: NOW * 1000, ...options });
  const log = captureLog();
  lines = log.lines;
  app = buildFacilitatorApp(opened.facilitator, facilitatorConfig(env), createLogger('debug', log.destination));
}
async function close(): Promise<void> {
  await app.close();
  opened.close();
}

const fresh = (of: Partial<Parameters<typeof lightningProof>[0]> = {}) => lightningProof({ createdAt: NOW, ...of });
const post = (payload: unknown, more: InjectOptions = {}) =>
  app.inject({
    method: 'POST',
    url: '/facilitator/settle',
    headers: { 'content-type': 'application/json' },
    payload: (typeof payload === 'string' ? payload : JSON.stringify(payload)) as string,
    ...more,
  });
/** The body for a payee, one of those that `makeKnown` makes known or another. */
const of = (payee: number) => fresh({ createdAt: opened.clock.now / 1000, privateKey: payeeKey(payee) }).body;
/** What a member says in words. Its text is that of the reason, and tested there. */
const SENTENCE = expect.stringMatching(/\.$/);
const refusal = (errorReason: string, network = NETWORK) => ({
  success: false,
  errorReason,
  message: SENTENCE,
  transaction: '',
  network,
});

describe('POST /facilitator/settle', () => {
  beforeAll(() => open({ limits: { perMinute: 0 } }));
  afterAll(close);

  it("claims the specification's vector, once", async () => {
    const requirement = {
      scheme: 'exact',
      network: NETWORK,
      asset: 'BTC',
      amount: '25000',
      payTo: VECTOR.payTo,
      maxTimeoutSeconds: 300,
      extra: {
        paymentFlow: 'upfront',
        invoice: VECTOR.invoice,
        requestHash: VECTOR.requestHash,
        requestBindingProfile: 'http:1',
        requestBindingParams: { headers: [] },
      },
    };
    const payload = { x402Version: 2, accepted: requirement, payload: { preimage: VECTOR.preimage } };
    const body = { x402Version: 2, paymentPayload: payload, paymentRequirements: requirement };
    const first = await post(body);
    expect([first.statusCode, first.json()]).toEqual([
      200,
      { success: true, transaction: VECTOR.paymentHash, network: NETWORK },
    ]);
    expect(first.headers).toMatchObject({
      'cache-control': 'no-store',
      'content-type': 'application/json; charset=utf-8',
      'access-control-allow-origin': '*',
      'x-request-id': expect.any(String),
    });
    expect((await post(body)).json()).toEqual(refusal('duplicate_settlement'));
  });

  type Body = ReturnType<typeof fresh>['body'];
  const both = (change: object) => (body: Body) => {
    Object.assign(body.paymentRequirements, change);
    Object.assign(body.paymentPayload.accepted, change);
  };
  const bothExtras = (change: object) => (body: Body) => {
    Object.assign(body.paymentRequirements.extra, change);
    Object.assign(body.paymentPayload.accepted.extra, change);
  };
  const required = (change: object) => (body: Body) => {
    Object.assign(body.paymentRequirements, change);
  };
  const requiredExtra = (change: object) => (body: Body) => {
    Object.assign(body.paymentRequirements.extra, change);
  };
  const preimage = (value: unknown) => (body: Body) => {
    Object.assign(body.paymentPayload.payload, { preimage: value });
  };
  const TESTNET = 'lnbtc:000000000933ea01ad0ee984209779ba';
  it.each<[string, (body: Body) => void]>([
    ['unsupported_scheme', (body) => Object.assign(body.paymentPayload, { accepted: null })],
    ['unsupported_scheme', both({ scheme: 'upto' })],
    ['network_mismatch', required({ network: TESTNET })],
    ['invalid_exact_lnbtc_amount_mismatch', required({ amount: 25_000 })],
    ['invalid_exact_lnbtc_asset', required({ asset: 'sats' })],
    ['invalid_exact_lnbtc_pay_to_mismatch', required({ payTo: OWN })],
    ['invalid_exact_lnbtc_max_timeout_mismatch', required({ maxTimeoutSeconds: 301 })],
    ['unsupported_network', both({ network: '__proto__' })],
    ['unsupported_network', both({ network: 'constructor' })],
    ['invalid_exact_lnbtc_amount', both({ amount: '025000' })],
    ['invalid_exact_lnbtc_max_timeout', both({ maxTimeoutSeconds: 0 })],
    ['invalid_exact_lnbtc_max_timeout', both({ maxTimeoutSeconds: 3601 })],
    ['invalid_exact_lnbtc_pay_to_malformed', both({ payTo: '02'.repeat(33).toUpperCase().replace('0', 'A') })],
    ['invalid_exact_lnbtc_asset_transfer_method', bothExtras({ assetTransferMethod: null })],
    ['invalid_exact_lnbtc_payment_flow', bothExtras({ paymentFlow: 'deferred' })],
    ['invalid_exact_lnbtc_request_binding', bothExtras({ requestBindingParams: { headers: ['B', 'a'] } })],
    ['invalid_exact_lnbtc_request_mismatch', requiredExtra({ requestHash: VECTOR.requestHash })],
    ['invalid_exact_lnbtc_extra_mismatch', requiredExtra({ order: 7 })],
    ['invalid_exact_lnbtc_invoice_missing', bothExtras({ invoice: '' })],
    ['invalid_exact_lnbtc_invoice_decode_failed', bothExtras({ invoice: 'lnbc1' })],
    ['invalid_exact_lnbtc_invoice_request_mismatch', bothExtras({ requestHash: VECTOR.requestHash })],
    ['invalid_exact_lnbtc_invoice_payee_mismatch', both({ payTo: OWN })],
    ['invalid_exact_lnbtc_invoice_currency_mismatch', both({ network: TESTNET })],
    ['invalid_exact_lnbtc_invoice_amount_mismatch', both({ amount: '25001' })],
    ['invalid_exact_lnbtc_invoice_expiry_mismatch', both({ maxTimeoutSeconds: 301 })],
    ['invalid_exact_lnbtc_preimage_missing', preimage(null)],
    ['invalid_exact_lnbtc_preimage_malformed', preimage('A'.repeat(64))],
    ['invalid_exact_lnbtc_preimage_length', preimage('00'.repeat(31))],
    ['invalid_exact_lnbtc_preimage_hash_mismatch', preimage('00'.repeat(32))],
  ])('answers 200 with %s', async (reason, change) => {
    const { body } = fresh();
    const good = structuredClone(body);
    change(body);
    const answer = await post(body);
    const { network } = body.paymentRequirements;
    expect([answer.statusCode, answer.json()]).toEqual([200, refusal(reason, network)]);
    // The unchanged body settles. So the change caused the refusal, and the refusal consumed nothing.
    expect((await post(good)).json()).toMatchObject({ success: true });
  });

  it.each([
    ['invalid_exact_lnbtc_invoice_description', { invoice: { description: 'a coffee' } }],
    ['invalid_exact_lnbtc_invoice_description', { invoice: { descriptionHash: null } }],
    ['invalid_exact_lnbtc_invoice_payee_mismatch', { invoice: { privateKey: OWN_SECRET } }],
    ['invalid_exact_lnbtc_invoice_created_in_future', { createdAt: NOW + 61 }],
    ['invalid_exact_lnbtc_invoice_expired', { createdAt: NOW - 361 }],
  ])('answers 200 with %s to an invoice with %o', async (reason, of) => {
    expect((await post(fresh(of).body)).json()).toEqual(refusal(reason));
  });

  it.each([
    ['no JSON', '{"x402Version":2'],
    ['nothing', ''],
    ['text', '"x402"'],
    ['a list', '[]'],
    ['a hidden prototype', '{"__proto__":{"x402Version":2,"paymentPayload":{},"paymentRequirements":{}}}'],
    ['version 1', '{"x402Version":1,"paymentPayload":{},"paymentRequirements":{}}'],
    ['a payload that is text', '{"x402Version":2,"paymentPayload":"e30=","paymentRequirements":{}}'],
  ])('answers 400 invalid_request to %s', async (_name, body) => {
    const answer = await post(body);
    expect([answer.statusCode, answer.json()]).toEqual([400, refusal('invalid_request', '')]);
    expect(answer.headers['cache-control']).toBe('no-store');
  });

  it('takes JSON under any content type, and under none', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/json; charset=utf-8']) {
      const answer = await post(fresh().body, { headers: { 'content-type': type } });
      expect([type, answer.json().success]).toEqual([type, true]);
    }
    expect((await post(fresh().body, { headers: {} })).json()).toMatchObject({ success: true });
    expect((await post(fresh().body, { headers: { 'content-type': '??' } })).json()).toEqual(
      refusal('invalid_request', ''),
    );
  });

  it("treats a `__proto__` in a server's declaration like any other key", async () => {
    const { body } = fresh();
    const declared = JSON.stringify(body).replaceAll('"extra":{', '"extra":{"__proto__":{"a":1},');
    expect((await post(declared)).json()).toMatchObject({ success: true });
    const other = JSON.stringify(fresh().body).replace(
      /("paymentRequirements":.*"extra":\{)/,
      '$1"__proto__":{"a":1},',
    );
    expect((await post(other)).json()).toEqual(refusal('invalid_exact_lnbtc_extra_mismatch'));
  });

  it.each(['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH'] as const)('answers 405 to %s', async (method) => {
    for (const url of ['/facilitator/settle', '/facilitator/verify']) {
      const answer = await app.inject({ method, url });
      expect([answer.statusCode, answer.headers.allow]).toEqual([405, 'POST, OPTIONS']);
    }
  });
});

describe('the size of a body', () => {
  beforeAll(() => open({}));
  afterAll(close);

  /** The body of a valid call, padded with white space to the given size. */
  const padded = (bytes: number) => JSON.stringify(fresh().body).padEnd(bytes, ' ');

  it('may be 64 KiB and not a byte more, with and without a stated length', async () => {
    const port = await listen(app);
    const send = (body: string, chunked: boolean) =>
      new Promise<{ status: number; body: string }>((resolve, reject) => {
        const length = chunked ? {} : { 'content-length': Buffer.byteLength(body) };
        const headers = { 'content-type': 'application/json', ...length };
        const sent = request(
          { port, host: '127.0.0.1', method: 'POST', path: '/facilitator/settle', headers, agent: false },
          (response) => {
            let text = '';
            response.on('data', (chunk) => {
              text += chunk;
            });
            response.on('end', () => resolve({ status: response.statusCode ?? 0, body: text }));
          },
        );
        sent.on('error', reject);
        if (chunked) sent.write(body.slice(0, 10));
        sent.end(chunked ? body.slice(10) : body);
      });
    for (const chunked of [false, true]) {
      const good = await send(padded(65_536), chunked);
      expect([chunked, good.status, JSON.parse(good.body).success]).toEqual([chunked, 200, true]);
      const large = await send(padded(65_537), chunked);
      expect([chunked, large.status, JSON.parse(large.body)]).toEqual([chunked, 413, refusal('body_too_large', '')]);
    }
  });

  it('is checked before the limits, and does not count against them', async () => {
    for (let n = 0; n < 61; n++) expect((await post(padded(65_537))).statusCode).toBe(413);
    expect((await post(fresh().body)).statusCode).toBe(200);
  });
});

describe('the limits', () => {
  beforeEach(() => open({ limits: { dailyCap: DAILY_CAP } }));
  afterEach(close);
  const DAILY_CAP = 30;
  const from = (remoteAddress: string, payload: unknown = '{}') => post(payload, { remoteAddress });

  it("refuse a client's 61st call of a minute, whatever it holds, and no other client's", async () => {
    for (let n = 0; n < 60; n++) expect((await from('192.0.2.1')).statusCode).toBe(400);
    opened.clock.now += 20_000;
    const { body } = fresh();
    const refused = await from('192.0.2.1', body);
    expect([refused.statusCode, refused.json()]).toEqual([429, refusal('rate_limited', '')]);
    expect(refused.headers).toMatchObject({ 'retry-after': '40', 'cache-control': 'no-store' });
    expect((await from('192.0.2.2', of(1))).json()).toMatchObject({ success: true });
    opened.clock.now += 40_000;
    expect((await from('192.0.2.1', body)).json()).toMatchObject({ success: true });
  });

  it('count an IPv6 /64 as one client', async () => {
    for (let n = 0; n < 60; n++) await from(`2001:db8::${n.toString(16)}`);
    expect((await from('2001:db8::ffff:1')).statusCode).toBe(429);
    expect((await from('2001:db8:0:1::1')).statusCode).toBe(400);
  });

  it("hold the day's cap across a restart, until midnight", async () => {
    // Half of the day is for known payees, and each payee may have a twentieth: one claim.
    await makeKnown(opened, DAILY_CAP / 2);
    for (let n = 0; n < DAILY_CAP; n++) expect((await from(`192.0.2.${n}`, of(n))).json().success).toBe(true);
    const { file, clock } = opened;
    await app.close();
    // Another process over the same ledger: it has none of the first one's memory.
    const first = opened;
    open({ file, startMs: clock.now, limits: { dailyCap: DAILY_CAP } });
    try {
      const untilMidnight = String(86_400 - (NOW % 86_400));
      const refused = await from('192.0.2.99');
      expect([refused.statusCode, refused.json()]).toEqual([503, refusal('daily_cap_reached', '')]);
      expect(refused.headers['retry-after']).toBe(untilMidnight);
      expect((await app.inject('/facilitator')).json()).toMatchObject({
        limits: { settledToday: DAILY_CAP },
        settled: { total: 2.5 * DAILY_CAP, today: DAILY_CAP, nodes: DAILY_CAP },
      });
      opened.clock.now += Number(untilMidnight) * 1000;
      const tomorrow = fresh({ createdAt: opened.clock.now / 1000 });
      expect((await from('192.0.2.99', tomorrow.body)).json()).toMatchObject({ success: true });
    } finally {
      await close();
      opened = first;
    }
  });

  it('limit one client to a tenth of the day, and leave the rest to others', async () => {
    for (let n = 0; n < 3; n++) expect((await from('192.0.2.1', of(n))).json().success).toBe(true);
    const refused = await from('192.0.2.1', of(4));
    expect([refused.statusCode, refused.json()]).toEqual([503, refusal('daily_cap_reached', '')]);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect((await from('192.0.2.2', fresh().body)).json()).toMatchObject({ success: true });
  });
});

describe('one host with ten /64s of one /48, behind a proxy', () => {
  const DAILY_CAP = 40;
  beforeEach(() => open({ limits: { dailyCap: DAILY_CAP, perMinute: 2 } }, { TRUSTED_PROXIES: '127.0.0.1' }));
  afterEach(close);
  const from = (address: string, payload: unknown = '{}') => post(payload, { headers: { 'x-forwarded-for': address } });
  const network = (n: number) => `2001:db8:7:${n.toString(16)}::1`;
  let payee = 0;
  const proof = () => {
    payee += 1;
    return fresh({ createdAt: opened.clock.now / 1000, privateKey: payeeKey(payee) }).body;
  };

  it('claims a tenth of the day in total, and a neighbouring /48 its own tenth', async () => {
    const ends = [];
    for (let n = 0; n < 10; n++) {
      ends.push((await from(network(n), proof())).json());
      opened.clock.now += 60_000;
    }
    expect(ends.filter(({ success }) => success)).toHaveLength(4);
    expect(ends.slice(4)).toEqual(Array(6).fill(refusal('daily_cap_reached', '')));
    const refused = await from(network(11), proof());
    const untilMidnight = String(86_400 - ((opened.clock.now / 1000) % 86_400));
    expect([refused.statusCode, refused.headers['retry-after']]).toEqual([503, untilMidnight]);
    expect((await from('2001:db8:8::1', proof())).json()).toMatchObject({ success: true });
    expect((await from('192.0.2.1', proof())).json()).toMatchObject({ success: true });
  });

  it('makes four clients’ calls a minute, and a neighbouring /48 its own', async () => {
    const statuses = [];
    for (let n = 0; n < 10; n++) statuses.push((await from(network(n))).statusCode);
    expect(statuses).toEqual([...Array(8).fill(400), 429, 429]);
    const refused = await from(network(11));
    expect([refused.json(), refused.headers['retry-after']]).toEqual([refusal('rate_limited', ''), '60']);
    expect((await from('2001:db8:8::1')).statusCode).toBe(400);
    opened.clock.now += 60_000;
    expect((await from(network(0))).statusCode).toBe(400);
  });
});

describe('the payees of a day', () => {
  const DAILY_CAP = 40;
  beforeEach(() => open({ limits: { dailyCap: DAILY_CAP } }));
  afterEach(close);
  let made = 0;
  const claim = (payee: number) => {
    made += 1;
    return post(of(payee), { remoteAddress: `192.0.2.${made % 250}` });
  };
  const messageOf = async (payee: number) => {
    const refused = await claim(payee);
    expect([refused.statusCode, refused.json()]).toEqual([503, refusal('daily_cap_reached')]);
    expect(refused.headers['retry-after']).toBe(String(86_400 - ((opened.clock.now / 1000) % 86_400)));
    return refused.json().message;
  };

  it('have a twentieth each and half together; the other half is for known ones; the refusal says which part is used up', async () => {
    await makeKnown(opened, 1);
    for (let n = 0; n < DAILY_CAP / 2; n++)
      expect((await claim(100 + (n >> 1))).json()).toMatchObject({ success: true });
    expect(await messageOf(100)).toMatch(/^This payee has used up its twentieth of this day\. Nothing was claimed: /);
    expect(await messageOf(200)).toMatch(/^The half of this day that is open to every payee is used up\. /);
    for (let n = 0; n < 2; n++) expect((await claim(0)).json()).toMatchObject({ success: true });
    expect(await messageOf(0)).toMatch(/^This payee has used up its twentieth/);
  });
});

describe('a store that does not answer', () => {
  beforeAll(() => open({}));
  afterAll(close);

  it('settles nothing and says when to try again', async () => {
    opened.db.pragma('query_only = ON');
    const { body } = fresh();
    const answer = await post(body);
    expect([answer.statusCode, answer.json()]).toEqual([503, refusal('replay_store_unavailable')]);
    expect(answer.headers['retry-after']).toBe('5');
    opened.db.pragma('query_only = OFF');
    expect((await post(body)).json()).toMatchObject({ success: true });
    opened.db.close();
    opened.clock.now += 1000;
    expect((await post(fresh().body)).statusCode).toBe(503);
    const descriptor = await app.inject('/facilitator');
    expect([descriptor.statusCode, descriptor.json().code]).toEqual([503, 'replay_store_unavailable']);
    expect((await app.inject('/facilitator/supported')).statusCode).toBe(200);
  });
});

describe('POST /facilitator/verify', () => {
  beforeAll(() => open({}));
  afterAll(close);

  it.each(['', '{}', 'x'.repeat(70_000), JSON.stringify(fresh().body)])(
    'is refused: the flow is settle, then serve',
    async (payload) => {
      const answer = await app.inject({ method: 'POST', url: '/facilitator/verify', payload });
      expect([answer.statusCode, answer.json()]).toEqual([
        400,
        { isValid: false, invalidReason: 'invalid_exact_lnbtc_payment_flow', message: SENTENCE },
      ]);
    },
  );
});

describe("the facilitator's description", () => {
  beforeEach(() => open({ ownPayTo: OWN }));
  afterEach(close);

  it.each(['/facilitator', '/v1/facilitator/lightning'])('is at %s, with the figures of this moment', async (url) => {
    const before = await app.inject(url);
    expect(before.json()).toMatchObject({ url: 'https://api.example/facilitator', settled: { total: 0 } });
    expect(before.headers['cache-control']).toBe('no-store');
    await post(fresh().body);
    await post(fresh({ privateKey: OWN_SECRET }).body);
    expect((await app.inject(url)).json()).toMatchObject({
      limits: { maxTimeoutSeconds: 3600, perMinute: 60, dailyCap: 20_000, settledToday: 2 },
      settled: { total: 2, today: 2, nodes: 2, forOurOwnNode: 1 },
    });
    const head = await app.inject({ method: 'HEAD', url });
    expect([head.statusCode, head.headers['content-type']]).toEqual([200, 'application/json; charset=utf-8']);
    expect((await app.inject({ method: 'POST', url })).headers.allow).toBe('GET, HEAD, OPTIONS');
  });

  it('lets the stock facilitator client read it, settle, and be refused', async () => {
    const url = `http://127.0.0.1:${await listen(app)}/facilitator`;
    const client = new HTTPFacilitatorClient({ url });
    const supported = await client.getSupported();
    expect(supported.kinds.map(({ network }) => network)).toEqual([NETWORK, 'lnbtc:000000000933ea01ad0ee984209779ba']);
    const { body, paymentHash } = fresh();
    const payload = body.paymentPayload as unknown as PaymentPayload;
    const requirements = body.paymentRequirements as unknown as PaymentRequirements;
    expect(await client.settle(payload, requirements)).toMatchObject({ success: true, transaction: paymentHash });
    expect(await client.settle(payload, requirements)).toMatchObject({
      success: false,
      errorReason: 'duplicate_settlement',
    });
    await expect(client.verify(payload, requirements)).rejects.toMatchObject({
      invalidReason: 'invalid_exact_lnbtc_payment_flow',
    });
  });
});

describe('a preimage', () => {
  beforeAll(() => open({}));
  afterAll(close);

  it('is in no file of the ledger and no line of the log, whatever happened to its proof', async () => {
    const [settled, twice, refused, torn] = [fresh(), fresh(), fresh(), fresh()];
    await post(settled.body);
    await post(twice.body);
    await post(twice.body);
    await post({ ...refused.body, paymentRequirements: { ...refused.body.paymentRequirements, amount: '1' } });
    await post(JSON.stringify(torn.body).slice(0, -1));
    opened.db.pragma('query_only = ON');
    const unsettled = fresh();
    await post(unsettled.body);
    const folder = dirname(opened.file);
    const files = readdirSync(folder);
    expect(files.sort()).toEqual(['ledger.db', 'ledger.db-shm', 'ledger.db-wal']);
    const bytes = Buffer.concat([
      ...files.map((name) => readFileSync(join(folder, name))),
      Buffer.from(JSON.stringify([lines, opened.lines])),
    ]);
    // Shows that the search works: it finds the payment hash.
    expect(bytes.includes(Buffer.from(settled.paymentHash, 'hex'))).toBe(true);
    for (const { preimage } of [settled, twice, refused, torn, unsettled]) {
      expect(formsOf(preimage).filter((form) => bytes.includes(form))).toEqual([]);
    }
  });
});
