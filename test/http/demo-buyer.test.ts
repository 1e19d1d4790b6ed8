import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config.ts';
import { mountDemoBuyer } from '../../src/pages/demo-buyer.ts';
import { type Service, serviceWith } from '../support/service/service.ts';
import { createTestApp, ENV } from './harness.ts';

const KEY = `0x${'7c'.repeat(32)}`;
const DEMO = { ...ENV, COLLECTOR: 'off', PLAY_MONEY: 'on', DEMO_BUYER_PRIVATE_KEY: KEY };

let service: Service;
beforeAll(async () => {
  service = await serviceWith(DEMO, {});
});
afterAll(() => service.stop());

async function requirement() {
  const { headers } = await service.get('/v1/paid/chain/token?address=x');
  return JSON.parse(Buffer.from(String(headers['payment-required']), 'base64').toString()).accepts[0];
}

const sign = (accepted: unknown, headers: Record<string, string> = {}, to: Service = service) =>
  to.get('/demo/sign', {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: to.origin, ...headers },
    body: JSON.stringify({ accepted }),
  });

describe('the demo’s buyer', () => {
  test('signs a price of ours for a page of ours, for ten minutes', async () => {
    const accepted = await requirement();
    const { status, headers, body } = await sign(accepted);
    expect([status, headers['cache-control']]).toEqual([200, 'no-store']);
    const { signature, authorization } = JSON.parse(body);
    expect(signature).toMatch(/^0x[0-9a-f]{130}$/);
    expect(authorization).toMatchObject({ to: accepted.payTo, value: accepted.amount });
    expect(Number(authorization.validBefore) - Number(authorization.validAfter)).toBe(1200);
    expect(JSON.parse((await sign(accepted)).body).authorization.nonce).not.toBe(authorization.nonce);
  });

  const port = () => new URL(service.origin).port;
  test.each([
    ['a page of another site', () => ({ origin: 'https://evil.example' })],
    ['another port of this machine', () => ({ origin: 'http://127.0.0.1:1' })],
    ['a page without an origin', () => ({ origin: 'null' })],
    [
      'a name that leads here by DNS',
      () => ({ host: `evil.example:${port()}`, origin: `http://evil.example:${port()}` }),
    ],
    ['a proxy on this machine', () => ({ 'x-forwarded-for': '127.0.0.1' })],
    ['a proxy that names itself', () => ({ via: '1.1 proxy' })],
  ])('refuses %s, and gives it no signature', async (_name, headers) => {
    const { status, body } = await sign(await requirement(), headers());
    expect([status, JSON.parse(body).code]).toEqual([403, 'demo_buyer_refused']);
    expect(body).not.toContain('signature');
  });

  test.each([
    ['127.0.0.1', 200],
    ['::1', 200],
    ['192.0.2.1', 403],
    ['::ffff:192.0.2.1', 403],
  ])('answers a connection from %s with %i, whatever the request says of itself', async (remoteAddress, expected) => {
    const network = { caip2: 'eip155:5042', usdc: ENV.USDC_ADDRESS };
    const config = { seller: ENV.SELLER_ADDRESS, network, trustedProxies: [] };
    const demoBuyer = async () => ({ signature: 'signed' });
    const extra = (app: FastifyInstance) => mountDemoBuyer(app, { config, demoBuyer, prices: new Set(['500']) });
    const { app } = await createTestApp({ extra });
    const accepted = {
      scheme: 'exact',
      network: network.caip2,
      asset: network.usdc,
      payTo: config.seller,
      amount: '500',
    };
    const headers = { origin: 'http://localhost:4021', host: 'localhost:4021' };
    const answer = await app.inject({
      method: 'POST',
      url: '/demo/sign',
      headers,
      remoteAddress,
      payload: { accepted },
    });
    expect(answer.statusCode).toBe(expected);
    await app.close();
  });

  test('refuses a program that sends no origin', async () => {
    const { status } = await service.get('/demo/sign', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    });
    expect(status).toBe(403);
  });

  test.each([
    ['another recipient', { payTo: `0x${'66'.repeat(20)}` }],
    ['another amount', { amount: '2001' }],
    ['another token', { asset: `0x${'66'.repeat(20)}` }],
    ['another chain', { network: 'eip155:1' }],
    ['another scheme', { scheme: 'upto' }],
  ])('refuses to pay %s', async (_name, change) => {
    const { status, body } = await sign({ ...(await requirement()), ...change });
    expect([status, JSON.parse(body).code]).toEqual([400, 'bad_parameter']);
  });

  test.each([null, 'x', [], {}])('refuses %j in place of a requirement', async (accepted) => {
    expect((await sign(accepted)).status).toBe(400);
  });

  test('answers POST alone, and is on the page', async () => {
    expect((await service.get('/demo/sign')).status).toBe(405);
    expect((await service.get('/docs')).body).toContain('data-demo-buyer="/demo/sign"');
  });

  test('refuses everyone behind a configured proxy', async () => {
    const proxied = await serviceWith({ ...DEMO, TRUSTED_PROXIES: '127.0.0.1' }, {});
    expect((await sign(await requirement(), {}, proxied)).status).toBe(403);
    await proxied.stop();
  });

  test('does not exist where no key is configured', async () => {
    const plain = await serviceWith({ ...ENV, COLLECTOR: 'off' }, {});
    expect((await sign(await requirement(), {}, plain)).status).toBe(404);
    expect((await plain.get('/docs')).body).not.toContain('data-demo-buyer');
    await plain.stop();
  });

  test.each([
    ['money', { PLAY_MONEY: 'off' }],
    ['a preset chain', { NETWORK: 'arc-testnet' }],
    ['production', { NODE_ENV: 'production', PUBLIC_ORIGIN: 'https://us.example' }],
  ])('cannot be configured for %s', (_name, change) => {
    expect(() => loadConfig({ ...DEMO, ...change })).toThrow(/DEMO_BUYER_PRIVATE_KEY is for play money alone/);
  });
});
