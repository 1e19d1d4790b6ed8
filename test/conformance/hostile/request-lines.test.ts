import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { latchedEndpoint } from '../../support/service/latch.ts';
import { type Service, startService } from '../../support/service/service.ts';

const latch = latchedEndpoint('/chain/latch');
let network: EmbeddedNetwork;
let service: Service;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  service = await startService(network, { catalogue: [latch.endpoint] });
});
afterAll(async () => {
  await service.stop();
  await network.stop();
});

/** Sends raw bytes and returns the status code of the first answer, or 0 when the connection ends without one. */
function raw(text: string): Promise<number> {
  const { hostname, port } = new URL(service.origin);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(text, 'latin1'));
    let answer = '';
    socket.setTimeout(60_000, () => socket.destroy(new Error(`no answer to ${JSON.stringify(text)}`)));
    socket.on('data', (chunk) => {
      answer = (answer + chunk.toString('latin1')).replace('HTTP/1.1 100 Continue\r\n\r\n', '');
      if (answer.includes('\r\n')) socket.end();
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0)));
  });
}

const path = '/v1/paid/chain/latch';
const get = (target: string, more = '') => `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${more}\r\n`;

const LINES: [string, string][] = [
  ['origin form', get(path)],
  ['alias', get('/v1/paid/arc/latch')],
  ['absolute form', get(`http://x${path}`)],
  ['absolute form, other host', get(`http://evil.example${path}`)],
  ['absolute form, https', get(`https://x${path}`)],
  ['authority without scheme', get(`//x${path}`)],
  ['double slash at the start', get(`/${path}`)],
  ['double slash inside', get('/v1//paid/chain/latch')],
  ['double slash at the end', get(`${path}//`)],
  ['trailing slash', get(`${path}/`)],
  ['encoded letter', get('/v1/%70aid/chain/latch')],
  ['encoded letter, upper hex', get('/v1/%70%61%69%64/chain/latch')],
  ['double encoded letter', get('/v1/%2570aid/chain/latch')],
  ['upper case', get('/V1/PAID/CHAIN/LATCH')],
  ['mixed case', get('/v1/Paid/chain/latch')],
  ['dot segment', get('/v1/./paid/chain/latch')],
  ['dot dot segment', get('/v1/free/../paid/chain/latch')],
  ['encoded dot segment', get('/v1/%2e%2e/v1/paid/chain/latch')],
  ['semicolon', get(`${path};a=1`)],
  ['semicolon inside', get('/v1/paid;x/chain/latch')],
  ['encoded slash', get('/v1/paid%2Fchain%2Flatch')],
  ['encoded slash, lower hex', get('/v1%2fpaid/chain/latch')],
  ['encoded backslash', get('/v1/paid%5Cchain%5Clatch')],
  ['backslash', get('/v1\\paid\\chain\\latch')],
  ['encoded null', get(`${path}%00`)],
  ['encoded line feed', get(`${path}%0a`)],
  ['encoded carriage return', get(`${path}%0d%0a`)],
  ['U+2028', get(`${path}%E2%80%A8`)],
  ['U+2029', get(`${path}%E2%80%A9`)],
  ['bare line feeds', `GET ${path} HTTP/1.1\nHost: x\nConnection: close\n\n`],
  ['line feed in the target', get('/v1/paid\n/chain/latch')],
  ['tab in the target', get('/v1/paid\t/chain/latch')],
  ['space in the target', get(`${path} x`)],
  ['broken escape', get(`${path}%`)],
  ['broken escape %zz', get('/v1/paid/%zz/latch')],
  ['overlong UTF-8', get('/v1/%c0%afpaid/chain/latch')],
  ['fragment', get(`${path}#x`)],
  ['encoded question mark', get(`${path}%3Fa=b`)],
  ['query only', get(`${path}?`)],
  ['missing slash', get('v1/paid/chain/latch')],
  ['HTTP/1.0', `GET ${path} HTTP/1.0\r\n\r\n`],
  ['HTTP/0.9', `GET ${path}\r\n\r\n`],
  ['HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['HEAD', get(path).replace('GET', 'HEAD')],
  ['head in lower case', get(path).replace('GET', 'get')],
  ['POST', get(path).replace('GET', 'POST')],
  ['QUERY', get(path).replace('GET', 'QUERY')],
  ['OPTIONS', get(path).replace('GET', 'OPTIONS')],
  ['TRACE', get(path).replace('GET', 'TRACE')],
  ['method override header', get(path, 'X-HTTP-Method-Override: OPTIONS\r\n')],
  ['method override header, X-Method', get(path, 'X-Method-Override: POST\r\nX-HTTP-Method: PUT\r\n')],
  ['POST overridden to GET', get(path, 'X-HTTP-Method-Override: GET\r\nContent-Length: 0\r\n').replace('GET', 'POST')],
  ['rewrite headers', get('/v1/network', `X-Original-URL: ${path}\r\nX-Rewrite-URL: ${path}\r\n`)],
  ['forwarded prefix', get('/chain/latch', 'X-Forwarded-Prefix: /v1/paid\r\n')],
  ['empty payment', get(path, 'PAYMENT-SIGNATURE: \r\n')],
  ['garbage payment', get(path, 'PAYMENT-SIGNATURE: paid\r\n')],
  ['payment of null', get(path, 'PAYMENT-SIGNATURE: bnVsbA==\r\n')],
  ['two payments', get(path, 'PAYMENT-SIGNATURE: e30=\r\nPAYMENT-SIGNATURE: e30=\r\n')],
  ['version 1 payment', get(path, 'X-PAYMENT: e30=\r\n')],
  ['settlement override', get(path, 'Settlement-Overrides: {"amount":"0"}\r\n')],
  ['a GET body', get(path, 'Content-Length: 4\r\n').concat('paid')],
  ['conditional', get(path, 'If-None-Match: *\r\n')],
  ['range', get(path, 'Range: bytes=0-1\r\n')],
  ['upgrade', get(path, 'Upgrade: h2c\r\nConnection: Upgrade\r\n')],
  ['expect', get(path, 'Expect: 100-continue\r\n')],
];

test.each(LINES)('a request of an unusual form (%s) does not reach the handler without a payment', async (_, line) => {
  const status = await raw(line);
  expect([0, 204, 400, 402, 404, 405, 417, 426, 505]).toContain(status);
  expect(latch.runs()).toBe(0);
});

test('the plain spelling is answered 402, so the table above uses a route that exists', async () => {
  expect(await raw(get(path))).toBe(402);
  expect(await raw(get('/v1/paid/arc/latch'))).toBe(402);
});
