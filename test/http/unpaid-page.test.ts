import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { priceOf } from '../support/prices.ts';
import { type Answer, type Service, serviceWith } from '../support/service/service.ts';
import { ENV } from './harness.ts';

// Who gets a 402 as a page. Everyone else's 402 stays what it was, to the byte.

const PATH = '/v1/paid/packages/vulns?name=lodash&ecosystem=npm';
const HTML_TYPE = 'text/html; charset=utf-8';
const JSON_TYPE = 'application/json; charset=utf-8';

const CHROME =
  'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,' +
  'application/signed-exchange;v=b3;q=0.7';
const BROWSERS = [
  CHROME,
  // Firefox, Safari, Lynx.
  'text/html,application/xhtml+xml,application/xml;q=0.9,image/png,image/svg+xml,*/*;q=0.8',
  'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
  'text/html, text/plain, text/sgml, text/css, application/xhtml+xml, */*;q=0.01',
];
const PROGRAMS = [
  // curl, wget, fetch, Python's requests and httpx.
  '*/*',
  // axios, Go and Rust clients of x402.
  'application/json, text/plain, */*',
  'application/json',
  'application/json, text/event-stream',
  // Models' fetch tools, and jQuery.
  'text/markdown, text/html, */*',
  'text/html, */*; q=1',
  'text/html;q=0.1, */*',
  'application/json, text/html;q=0.1',
  'application/problem+json, text/html;q=0.9',
  'text/*',
  'text/html;q=0',
  '',
];

let service: Service;
const ask = (accept: string | undefined, path = PATH, headers: Record<string, string> = {}, method = 'GET') =>
  service.get(path, { method, headers: { ...headers, ...(accept !== undefined && { accept }) } });
beforeAll(async () => {
  service = await serviceWith({ ...ENV, COLLECTOR: 'off', MPP: 'on', ROUTES_OFF: 'wiki/article' }, {});
});
afterAll(() => service.stop());

/** Without what differs from answer to answer. */
const lasting = ({ status, headers, body }: Answer) => {
  const {
    'x-request-id': _id,
    date: _date,
    'ratelimit-remaining': _left,
    'ratelimit-reset': _reset,
    ...rest
  } = headers;
  return { status, headers: rest, body };
};

describe('an unpaid GET', () => {
  test.each(BROWSERS)('that accepts %s gets a page, with the header of everyone', async (accept) => {
    const [page, json] = [await ask(accept), await ask(undefined)];
    expect([page.status, page.headers['content-type'], page.headers.vary]).toEqual([402, HTML_TYPE, 'accept']);
    expect(page.headers['payment-required']).toBe(json.headers['payment-required']);
    expect(page.headers['cache-control']).toBe('no-store');
    expect(page.headers['content-security-policy']).toContain("default-src 'none'");
    expect(page.body).toContain(`<h1>This answer costs ${priceOf('/packages/vulns').usd} USDC</h1>`);
  });

  test.each(PROGRAMS)('that accepts "%s" gets what one without Accept gets, to the byte', async (accept) => {
    const plain = lasting(await ask(undefined));
    expect(lasting(await ask(accept))).toEqual(plain);
    expect(plain).toMatchObject({ status: 402, headers: { 'content-type': JSON_TYPE, vary: 'accept' } });
    expect(Object.keys(JSON.parse(plain.body))).toEqual(['hint']);
  });
});

describe('no page is the answer to', () => {
  test('a HEAD, which stays as it was, and another method', async () => {
    const head = await ask(CHROME, PATH, {}, 'HEAD');
    expect([head.status, head.body, head.headers['content-type']]).toEqual([402, '', JSON_TYPE]);
    expect(head.headers.vary).toBeUndefined();
    expect(lasting(head)).toEqual(lasting(await ask('*/*', PATH, {}, 'HEAD')));
    expect((await ask(CHROME, PATH, {}, 'POST')).status).toBe(405);
  });

  test.each([
    ['payment-signature', 'e30='],
    ['payment-signature', ''],
    ['x-payment', 'e30='],
    ['x-payment-signature', 'e30='],
    ['authorization', 'Payment abc'],
    ['authorization', 'L402 abc:def'],
  ])('a request that presents a payment in %s: "%s"', async (name, value) => {
    const [html, json] = [await ask(CHROME, PATH, { [name]: value }), await ask('*/*', PATH, { [name]: value })];
    expect(lasting(html)).toEqual(lasting(json));
    expect([html.status, html.headers['content-type']]).toEqual([402, JSON_TYPE]);
  });

  test('a request for a route that is sold in another way', async () => {
    const mpp = await ask(CHROME, '/v1/mpp/packages/vulns?name=lodash&ecosystem=npm');
    expect([mpp.status, mpp.headers['content-type']]).toEqual([402, 'application/problem+json; charset=utf-8']);
    expect(mpp.headers.vary).toBeUndefined();
    const lightning = await ask(CHROME, '/v1/lightning/packages/vulns?name=lodash&ecosystem=npm');
    expect(lightning.headers['content-type']).not.toBe(HTML_TYPE);
    expect((await ask(CHROME, '/v1/paid')).headers['content-type']).toBe(JSON_TYPE);
  });

  test('a request for a route that is off, which is a 404 with its own page', async () => {
    const gone = await ask(CHROME, '/v1/paid/wiki/article?title=x');
    expect([gone.status, gone.headers['payment-required']]).toEqual([404, undefined]);
  });
});

test('behind a proxy that asks for a password a browser gets the page too', async () => {
  expect((await ask(CHROME, PATH, { authorization: 'Basic dTpw' })).headers['content-type']).toBe(HTML_TYPE);
});

describe('the page', () => {
  const EVIL = `"><script>alert(1)</script><img src=x onerror='alert(2)'>`;
  const evil = `/v1/paid/packages/vulns?name=${encodeURIComponent(EVIL)}&${encodeURIComponent(EVIL)}=${EVIL.replaceAll(' ', '+')}`;

  test('shows what comes from the request as text', async () => {
    const { status, body, headers } = await ask(CHROME, evil);
    expect([status, headers['content-type']]).toEqual([402, HTML_TYPE]);
    expect(body).toContain('value="&quot;&gt;&lt;script&gt;alert(1)');
    expect(body).toContain('<p id="fault">');
    expect(body).not.toMatch(/<script>|<img src=x/);
    expect(body.match(/<script(?![^>]* src=)/)).toBeNull();
    // Within the quotes of an attribute everything is text.
    const bare = body.replace(/="[^"]*"/g, '=""');
    expect(bare.match(/<style|<[^>]*\s(style|on\w+)=/i)).toBeNull();
  });

  test('has no id twice, no dead link, and no reference to an id that is not there', async () => {
    const own = new Set<string>();
    for (const path of [PATH, evil, '/v1/paid/fees/forecast', '/v1/paid/fees/estimate?gas=5&gas=6']) {
      const { body } = await ask(CHROME, path);
      const ids = [...body.matchAll(/ id="([^"]*)"/g)].map(([, id]) => `${id}`);
      expect(ids).toEqual([...new Set(ids)]);
      for (const [, named] of body.matchAll(/ (?:aria-labelledby|aria-describedby|for)="([^"]*)"/g))
        for (const id of `${named}`.split(' ')) expect(ids).toContain(id);
      for (const [, to] of body.matchAll(/(?:href|src|action)="(\/[^"#]*)/g)) own.add(`${to}`.replaceAll('&amp;', '&'));
    }
    expect([...own]).toContain('/v1/fees');
    for (const to of own) expect([to, (await service.get(to)).status]).not.toEqual([to, 404]);
  });
});
