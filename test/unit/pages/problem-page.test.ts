import Fastify from 'fastify';
import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { AppError, type Charged } from '../../../src/errors.ts';
import { installErrorHandlers } from '../../../src/http/problems.ts';
import { createProblemPage } from '../../../src/pages/small.ts';

const CONFIG = {
  publicOrigin: 'https://us.example',
  network: { name: 'Arc', isPlayMoney: false },
  web: { contactUrl: null },
  site: { sourceUrl: null, termsUrl: null },
};

/** Asks, as a browser does, for a route that fails with 404. */
async function failing(charged: Charged, headers: Record<string, string> = {}) {
  const app = Fastify();
  const log = pino({ level: 'silent' });
  installErrorHandlers(...([app, log, () => {}, () => 'There is no such route.'] as const), createProblemPage(CONFIG));
  app.get('/sold', () => {
    throw new AppError(404, 'not_found', 'There is no such block.', { charged });
  });
  const answer = await app.inject({ url: '/sold', headers: { accept: 'text/html,*/*;q=0.8', ...headers } });
  await app.close();
  return answer;
}

describe('a 404 of a browser', () => {
  test('is a page that says that the request cost nothing, when the error says so', async () => {
    const { statusCode, headers, body } = await failing(false);
    expect([statusCode, headers['content-type']]).toEqual([404, 'text/html; charset=utf-8']);
    expect(body).toContain('Nothing was charged for this request.');
  });

  test.each([true, 'unknown'] as const)('never says that nothing was charged when charged is %j', async (charged) => {
    const { headers, body } = await failing(charged);
    expect(headers['content-type']).toContain('problem+json');
    expect(JSON.parse(body).charged).toBe(charged);
  });

  test.each([
    ['payment-signature', 'a payment'],
    ['x-payment', 'a payment'],
    ['x-payment-signature', 'a payment'],
    ['authorization', 'Payment abc'],
    ['authorization', 'L402 abc:def'],
  ])('is a problem document for a program that presents a payment in %s: %s', async (name, value) => {
    const { headers, body } = await failing(false, { [name]: value });
    expect(headers['content-type']).toContain('problem+json');
    expect(JSON.parse(body).charged).toBe(false);
  });

  test('is a page also behind a proxy that asks for a password', async () => {
    const { headers } = await failing(false, { authorization: 'Basic dTpw' });
    expect(headers['content-type']).toBe('text/html; charset=utf-8');
  });
});
