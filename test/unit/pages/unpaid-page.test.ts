import type { PaymentRequirements } from '@x402/core/types';
import Fastify from 'fastify';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEndpoint, type Endpoint } from '../../../src/catalogue/endpoint.ts';
import { createUnpaidPage } from '../../../src/pages/small.ts';
import { createUsdcCheckout, http402 } from '../../../src/payment/checkout.ts';
import { createGate } from '../../../src/payment/gate.ts';
import { x402Http } from '../../../src/payment/protocols/x402/http.ts';
import { runningWith } from '../../support/payment/call.ts';

const chain = { name: 'Arc', isPlayMoney: false };
const CONFIG = {
  publicOrigin: 'https://us.example',
  handlerTimeoutMs: 1000,
  network: {
    ...chain,
    caip2: 'eip155:5042',
    usdc: `0x36${'0'.repeat(38)}`,
    chainId: 5042,
    explorerUrl: null,
    getUsdcUrl: 'https://faucet.example',
    walletRpcUrls: ['https://rpc.example'],
  },
  protocols: { mpp: false },
  rails: { gateway: null, exactFrom: 0n },
  seller: `0x${'5e'.repeat(20)}`,
  trustedProxies: [],
  web: { contactUrl: null },
  site: { sourceUrl: null, termsUrl: null },
};
const PLAIN: PaymentRequirements = {
  scheme: 'exact',
  network: 'eip155:5042',
  amount: '2000',
  asset: CONFIG.network.usdc,
  payTo: CONFIG.seller,
  maxTimeoutSeconds: 604_900,
  extra: { name: 'USDC', version: '2', assetTransferMethod: 'eip3009' },
};
const GATEWAY = { ...PLAIN, extra: { name: 'GatewayWalletBatched', version: '1' } };
const CHANNEL = { ...PLAIN, scheme: 'batch-settlement' };

const thing: Endpoint<object> = defineEndpoint({
  path: '/things/find',
  access: 'paid',
  priceUsd: '0.002',
  label: 'Thing',
  summary: 'A thing & its <age>.',
  notFor: null,
  tags: '',
  ofChain: false,
  freeSummary: '/v1/things',
  params: z.object({
    q: z.string().meta({ description: 'What it is' }),
    kind: z.enum(['old', 'new']).default('old').meta({ description: 'How old' }),
    near: z.string().optional().meta({ description: 'Where' }),
  }),
  result: z.object({ age: z.string() }),
  example: { params: { q: 'a clock' }, result: { age: '<100>' } },
  async run() {
    throw new Error('nothing is sold here');
  },
});

interface Shown {
  accepts?: readonly PaymentRequirements[];
  hasLightning?: boolean;
  endpoint?: Endpoint<object>;
  accept?: string;
  type?: string;
}

/** The 402 that a browser gets from the gate. */
async function shown(query = '', given: Shown = {}) {
  const { accepts = [PLAIN], hasLightning = false, endpoint = thing } = given;
  const { accept = 'text/html', type = 'text/html' } = given;
  const { publicOrigin } = CONFIG;
  const offer = { requirement: PLAIN, accepts, demand: x402Http.prepare(endpoint, accepts, { publicOrigin, chain }) };
  const gate = createGate<object>({
    checkoutOf: (one) =>
      createUsdcCheckout(one, {
        offer: () => offer,
        railFor: () => {
          throw new Error('nothing is paid here');
        },
        write: http402(one, {}),
        running: runningWith({}),
        words: () => '',
      }),
    protocol: x402Http,
    log: { error: () => {} },
    pageOf: createUnpaidPage({ config: CONFIG, demoBuyer: null, sources: {}, hasLightning }),
  });
  const app = Fastify();
  app.get('/v1/paid/things/find', gate.guard(endpoint));
  const answer = await app.inject({ url: `/v1/paid/things/find${query}`, headers: { accept } });
  await app.close();
  expect([answer.statusCode, answer.headers['content-type']]).toEqual([402, `${type}; charset=utf-8`]);
  return answer.body;
}

/** A field of the form as it is written. */
const field = (body: string, name: string) =>
  new RegExp(`<(input|select) id="paidThingsFind-${name}"[^>]*>`).exec(body)?.[0];

describe('the page of a 402', () => {
  test('names the price, what is sold and an answer, and decodes the header', async () => {
    const body = await shown('?q=a+clock');
    expect(body).toContain('<h1>This answer costs 0.002 USDC</h1>');
    expect(body).toContain('<p class="lead">A thing &amp; its &lt;age&gt;.</p>');
    expect(body).toContain('&quot;age&quot;: &quot;&lt;100&gt;&quot;');
    expect(body).toContain('<dt>Price</dt><dd>0.002 USDC (2000 base units)</dd>');
    expect(body).toContain(`<dt>Pay to</dt><dd>${CONFIG.seller}</dd>`);
    expect(body).toContain('<a href="/v1/things">Free summary</a>');
    expect(body).toContain('on Arc: <a href="https://faucet.example"');
    expect(body).toContain('&quot;chainId&quot;:&quot;0x13b2&quot;');
    expect(body).not.toContain('id="fault"');
  });

  test('puts the request’s values into the form and into the code, quoted for each language', async () => {
    const body = await shown(`?q=it%27s+%3Cnew%3E&kind=new`);
    expect(field(body, 'q')).toContain('value="it&#39;s &lt;new&gt;"');
    expect(body).toContain('<option selected>new</option>');
    expect(body).toContain(
      'https://us.example/v1/paid/things/find?q=it%27s+%3Cnew%3E&amp;kind=new&#39;</span> --max-usdc 0.002',
    );
    expect(body).not.toContain('<new>');
  });

  test('of a bare request says what is missing and has the example in its form', async () => {
    const body = await shown();
    expect(body).toContain('<strong class="bad">Not sold like this:</strong> q is missing, for example a clock');
    expect(field(body, 'q')).toContain('value="a clock"');
    expect(body).toContain('<option selected>old</option>');
    // Without scripts an empty field that need not be there is not sent.
    expect(field(body, 'near')).toContain('disabled');
  });

  test('of a faulty request keeps its values, leaves the missing field open, and says what is wrong', async () => {
    const body = await shown('?kind=broken&wrong=%3Cb%3E&near=a&near=b');
    expect(body).toMatch(/id="fault">.*wrong: no such parameter; there are q, kind, near.*near: given more than once/);
    expect(field(body, 'q')).toMatch(/ required value=""/);
    expect(field(body, 'q')).not.toContain('disabled');
    expect(field(body, 'near')).toContain('value="a"');
    expect(body).not.toContain('<b>');
  });

  test('leads to the route in bitcoin where it is sold so, with the request’s values but for a `q`', async () => {
    const link = '<a href="/docs?kind=new#lightningThingsFind">Pay in bitcoin</a>';
    expect(await shown('?q=a&kind=new', { hasLightning: true })).toContain(link);
    expect(await shown('?q=a&kind=new')).not.toContain('Pay in bitcoin');
    const onlyInUsdc = { ...thing, onlyOn: 'paid' as const };
    expect(await shown('?q=a', { hasLightning: true, endpoint: onlyInUsdc })).not.toContain('Pay in bitcoin');
  });

  test.each([
    ['the plain way', [PLAIN], true],
    ['the plain way among others', [GATEWAY, CHANNEL, PLAIN], true],
    ['a deposit in the Gateway', [GATEWAY], false],
    ['a payment channel', [CHANNEL], false],
  ])('offers a button to wallets only for what they can sign: %s', async (_, accepts, isPayable) => {
    const body = await shown('?q=a', { accepts });
    expect(body.includes('data-price="0.002"')).toBe(isPayable);
    expect(body.includes('takes no plain transfer')).toBe(!isPayable);
    expect(body.match(/<dt>Price<\/dt>/g)).toHaveLength(accepts.length);
  });

  test('is for an address and an Accept that people send: longer ones would make it long and slow for nothing', async () => {
    const long = (length: number) => `?q=${'%27'.repeat(length / 3)}`;
    const json = { type: 'application/json' };
    expect((await shown(long(1998))).length).toBeLessThan(70_000);
    expect((await shown(long(2100), json)).length).toBeLessThan(1000);
    await shown('?q=a', { accept: `text/html${','.repeat(1000)}` });
    await shown('?q=a', { accept: `text/html${','.repeat(1100)}`, ...json });
  });
});
