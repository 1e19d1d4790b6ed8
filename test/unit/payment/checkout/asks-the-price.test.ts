import { describe, expect, test } from 'vitest';
import { API_CATALOG_LINK } from '../../../../src/catalogue/paths.ts';
import { LIGHTNING_ADDRESS, MAIN_ADDRESS } from '../../../../src/mcp/tool.ts';
import type { UnpaidPage } from '../../../../src/payment/gate.ts';
import {
  LIGHTNING_ROUTE,
  LIGHTNING_TOOL,
  messageTo,
  named,
  PATHS,
  ROUTES,
  USDC_ROUTE,
  USDC_TOOL,
  WAYS,
} from '../../../support/payment/checkout-calls.ts';
import {
  CHANNELS,
  IN_BITCOIN,
  ORIGIN,
  openCheckouts,
  PAYMENTS,
  PLAIN,
  TOOL,
} from '../../../support/payment/checkout-world.ts';
import { PLAIN_RAILS, TERMS } from '../../../support/service/terms.ts';

const decodeHeader = (headers: Record<string, unknown>) =>
  JSON.parse(Buffer.from(String(headers['payment-required']), 'base64').toString());

const X402 =
  'pay with any x402 v2 client that allows this asset in its spend controls, and repeat the request with PAYMENT-SIGNATURE.';
const FREE = ' Free summary: GET /v1/test/free.';
const AGAIN = 'pays it by the terms below, and then makes the same call again.';
const unpaid = (price: string, wallet: string) =>
  `${TOOL} is not paid for yet, and nothing was charged. It costs ${price}: a client with a ${wallet} wallet ${AGAIN}`;
const inUsdc = (chain: string) =>
  `Tells a thing. This answer costs 0.016 USDC on ${chain}: ${X402} How to pay: ${ORIGIN}/docs#paidTestSold.`;
const inBitcoin = (money: string) =>
  `Tells a thing. This answer costs 25 sat (0.016 USD) ${money}: pay the invoice in accepts, and repeat the request with the preimage. How to pay: ${ORIGIN}/docs#lightningTestSold.`;

describe('without a payment', () => {
  test.each(WAYS)('%s asks for its price, for exactly this call, and sells nothing', async (_name, way) => {
    const world = await openCheckouts();
    const { status, error, accepts, url, receipt } = await world.call(way);
    expect([status, error, receipt, world.sales]).toEqual([402, 'Payment required', null, []]);
    expect(url).toBe(way.at === 'tool' ? `mcp://tool/${TOOL}` : `${ORIGIN}${PATHS[way.money]}?a=1&b=2`);
    const [invoice] = world.invoices();
    const quoted = { ...IN_BITCOIN, extra: expect.objectContaining({ invoice }) };
    const ofTool = [expect.objectContaining(quoted), PLAIN];
    expect(accepts).toEqual(way.money === 'usdc' ? [PLAIN] : ofTool.slice(0, way.at === 'tool' ? 2 : 1));
    expect(world.invoices()).toHaveLength(way.money === 'usdc' ? 0 : 1);
    // Over Lightning the answer is made before the offer, for the client that asks.
    const offer = { client: '127.0.0.1', params: { a: '1', b: '2' }, isKept: way.at === 'route' };
    const forOffer = way.money === 'usdc' ? [] : [offer];
    expect([world.offered, world.runs]).toEqual([forOffer, forOffer.map(() => '1')]);
  });

  test.each([
    ['a route in USDC', USDC_ROUTE, {}, inUsdc('Arc') + FREE],
    [
      'such a route without a free summary',
      USDC_ROUTE,
      { endpoint: { freeSummary: undefined as never } },
      inUsdc('Arc'),
    ],
    ['such a route of play money', USDC_ROUTE, { isPlayMoney: true }, inUsdc('Arc (demo, play money)') + FREE],
    ['a route over Lightning', LIGHTNING_ROUTE, {}, inBitcoin('in bitcoin over Lightning')],
    [
      'such a route of play money',
      LIGHTNING_ROUTE,
      { isPlayMoney: true },
      inBitcoin('in bitcoin over Lightning (demo, play money)'),
    ],
    ['a tool in USDC', USDC_TOOL, {}, unpaid('0.016 USDC on Arc', 'USDC')],
    [
      'such a tool of play money',
      USDC_TOOL,
      { isPlayMoney: true },
      unpaid('0.016 USDC on Arc (demo, play money)', 'USDC'),
    ],
    ['a tool over Lightning', LIGHTNING_TOOL, {}, unpaid('25 sats over Lightning (0.016 USD)', 'Lightning')],
    [
      'such a tool for a single sat',
      LIGHTNING_TOOL,
      { endpoint: { priceUsd: '0.00064' } },
      unpaid('1 sat over Lightning (0.00064 USD)', 'Lightning'),
    ],
  ])('%s says in words what it costs, what to do and where to read', async (_title, way, choices, words) => {
    const world = await openCheckouts(choices);
    expect((await world.call(way)).words).toBe(words);
  });

  test.each(ROUTES)('%s is a 402 that no cache may keep', async (_name, way) => {
    const { headers } = await (await openCheckouts()).call(way);
    expect(headers).toMatchObject({ 'cache-control': 'no-store', 'content-type': 'application/json; charset=utf-8' });
    // Where an agent finds what else is sold.
    expect(headers.link).toBe(API_CATALOG_LINK);
  });

  test('the body of a route says in USDC the words alone, and over Lightning all that the header says', async () => {
    const world = await openCheckouts();
    const inUsdc = await world.call(USDC_ROUTE);
    expect(JSON.parse(inUsdc.body)).toEqual({ hint: inUsdc.words });
    const { body, headers } = await world.call(LIGHTNING_ROUTE);
    const said = JSON.parse(Buffer.from(String(headers['payment-required']), 'base64').toString());
    expect(JSON.parse(body)).toEqual({ ...said, priceUsd: '0.016', btcUsd: '64000' });
  });

  test.each(ROUTES)('%s tells a client of x402 version 1 the header of version 2', async (_name, way) => {
    const { status, error } = await (await openCheckouts()).call(way, { headers: { 'x-payment': 'x' } });
    expect([status, error]).toEqual([
      402,
      'X-PAYMENT is x402 version 1; this service speaks version 2: send PAYMENT-SIGNATURE',
    ]);
  });

  test('HEAD is the same 402 without a body, and never sells, even with a payment', async () => {
    const world = await openCheckouts();
    const { status, body, headers } = await world.call(USDC_ROUTE, { method: 'HEAD', payment: PAYMENTS.usdc });
    expect([status, body, world.sales]).toEqual([402, '', []]);
    const got = await world.call(USDC_ROUTE);
    for (const name of ['payment-required', 'content-type', 'content-length'])
      expect(headers[name]).toBe(got.headers[name]);
  });
});

describe.each(ROUTES)('a page in place of the 402 of %s', (_name, way) => {
  /** Sends a page to who accepts one. `asked`: the methods of the requests that it was asked about. */
  async function openWithPage() {
    const asked: string[] = [];
    const page: UnpaidPage = ({ method, headers }, { fields }) => {
      asked.push(method);
      if (headers.accept !== 'text/html') return null;
      return (reply) => void reply.type('text/html').send(`<p>${fields.length}</p>`);
    };
    return { ...(await openCheckouts({ page })), asked };
  }
  const html = { accept: 'text/html' };

  test('has its status and its terms, and stands for requests that accept it alone', async () => {
    const { app, asked, sales } = await openWithPage();
    const shown = await app.inject(messageTo(way, { headers: html }));
    expect([shown.statusCode, shown.headers['content-type'], shown.headers.vary]).toEqual([402, 'text/html', 'accept']);
    expect(shown.body).toMatch(/^<p>[1-9]<\/p>$/);
    const plain = await app.inject(messageTo(way, {}));
    expect([plain.statusCode, plain.headers['content-type'], plain.headers.vary]).toEqual([
      402,
      'application/json; charset=utf-8',
      'accept',
    ]);
    for (const { headers } of [shown, plain]) expect(decodeHeader(headers)).toMatchObject({ x402Version: 2 });
    expect([asked, sales]).toEqual([['GET', 'GET'], []]);
  });

  test('is not made for HEAD, or for a payment that is refused', async () => {
    const { call, refuses, asked } = await openWithPage();
    refuses('x');
    const payment = PAYMENTS[way.money];
    for (const request of [{ method: 'HEAD', headers: html } as const, { payment, headers: html }]) {
      const { status, headers } = await call(way, request);
      expect([status, headers['content-type'], headers.vary]).toEqual([
        402,
        'application/json; charset=utf-8',
        undefined,
      ]);
    }
    expect(asked).toEqual([]);
  });
});

describe('which rail', () => {
  const LIGHTNING = { 'percall/rail': 'lightning' };
  const USDC = { 'percall/rail': 'usdc' };
  test.each([
    ['USDC where both are sold', USDC_TOOL, {}, undefined, ['USDC']],
    ['USDC by name', USDC_TOOL, {}, USDC, ['USDC']],
    ['Lightning for the asking, and USDC after it', USDC_TOOL, {}, LIGHTNING, ['BTC', 'USDC']],
    ['Lightning unasked at the address of Lightning', LIGHTNING_TOOL, {}, undefined, ['BTC', 'USDC']],
    ['USDC by name at the address of Lightning', LIGHTNING_TOOL, {}, USDC, ['USDC']],
    ['Lightning unasked where there is no other way', USDC_TOOL, { onlyOn: 'lightning' }, {}, ['BTC']],
    ['USDC where there is no other way', USDC_TOOL, { onlyOn: 'paid' }, {}, ['USDC']],
    ['nothing that stands in a prototype', USDC_TOOL, {}, Object.create(LIGHTNING), ['USDC']],
  ] as const)('a tool offers: %s', async (_title, way, endpoint, meta, assets) => {
    const { accepts } = await (await openCheckouts({ endpoint })).call(way, { meta });
    expect(accepts?.map(({ asset }) => (asset === 'BTC' ? asset : 'USDC'))).toEqual(assets);
  });

  test('the address without a rail lists every tool, and that of Lightning those that bitcoin buys', async () => {
    const listed = [];
    for (const onlyOn of [undefined, 'paid', 'lightning'] as const) {
      const { tool } = await openCheckouts({ endpoint: onlyOn ? { onlyOn } : {} });
      const main = tool.listedAt(MAIN_ADDRESS);
      listed.push([main?.name, tool.listedAt(LIGHTNING_ADDRESS)?.name]);
    }
    expect(listed).toEqual([
      [TOOL, TOOL],
      [TOOL, undefined],
      [TOOL, TOOL],
    ]);
  });
});

describe.each(named(USDC_ROUTE, USDC_TOOL))('the ways to pay %s', (_name, way) => {
  const schemes = async ({ call }: Awaited<ReturnType<typeof openCheckouts>>) =>
    (await call(way)).accepts?.map(({ extra, scheme }) => (scheme === 'exact' ? extra.name : scheme));

  test('have the Gateway’s contract second where that rail is on', async () => {
    const { accepts } = await (await openCheckouts({ rails: TERMS.rails })).call(way);
    expect(accepts).toEqual([PLAIN, expect.objectContaining({ amount: '16000' })]);
    expect(accepts?.[1]?.extra.verifyingContract).toBe(TERMS.rails.gateway?.wallet);
  });

  test('have channels once their contract was found, and while nobody has looked again, until it is not found', async () => {
    const world = await openCheckouts({ rails: CHANNELS });
    const seen = [await schemes(world)];
    for (const found of [true, null, false, null]) {
      world.channelsFound(found);
      seen.push(await schemes(world));
    }
    const both = ['USDC', 'batch-settlement'];
    expect(seen).toEqual([['USDC'], both, both, ['USDC'], ['USDC']]);
  });

  test('leave the plain entry out below the price from which it is sold', async () => {
    const from = async (exactFrom: bigint | null) =>
      schemes(await openCheckouts({ rails: { ...TERMS.rails, exactFrom } }));
    expect([await from(16_000n), await from(16_001n), await from(null)]).toEqual([
      ['USDC', 'GatewayWalletBatched'],
      ['GatewayWalletBatched'],
      ['GatewayWalletBatched'],
    ]);
  });

  test('can be none, while no rail is proven: 503 from a route, and from a tool an empty offer that says so', async () => {
    const world = await openCheckouts({ rails: { ...PLAIN_RAILS, exactFrom: null } });
    const { status, code, accepts, words } = await world.call(way);
    if (way.at === 'route') expect([status, code]).toEqual([503, 'settlement_unavailable']);
    else
      expect([status, accepts, words]).toEqual([
        402,
        [],
        `${TOOL} is not paid for yet, and nothing was charged. No new payment can be asked for now: make the same call again later.`,
      ]);
  });
});
