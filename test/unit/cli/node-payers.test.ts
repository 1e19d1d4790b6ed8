import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { payerFrom } from '../../../cli/keys.ts';
import { type LightningPayer, NotPaid } from '../../../cli/payers/payer.ts';
import { startStandIn } from '../../support/upstream/http-stand-in.ts';

// Core Lightning and phoenixd as the buyer's wallet, by the answers of their interfaces.

const preimage = 'ab'.repeat(32);
const hash = 'cd'.repeat(32);
const terms = { feeLimitMsat: 7000n };

let node: Awaited<ReturnType<typeof startStandIn>>;
let answer: { status?: number; json?: unknown; text?: string };
beforeAll(async () => {
  node = await startStandIn(async () => answer);
});
afterAll(() => node.stop());
afterEach(() => void node.asked.splice(0));

const outcomeOf = (paying: Promise<unknown>) =>
  paying.catch((error: Error) => [error instanceof NotPaid ? 'not paid' : 'open', error.message]);
async function payer(env: Record<string, string>): Promise<LightningPayer> {
  const found = await payerFrom(env);
  if (!found) throw new Error('no payer');
  return found;
}

describe('a Core Lightning node', () => {
  const cln = () => payer({ CLN_PAYER_URL: `${node.url}/`, CLN_PAYER_RUNE: 'rune' });

  test('is asked to pay within a fee, and returns the preimage', async () => {
    answer = { json: { status: 'complete', payment_preimage: preimage } };
    expect(await (await cln()).pay('lnbc1', terms)).toBe(preimage);
    expect(node.asked[0]).toMatchObject({
      path: '/v1/pay',
      headers: { rune: 'rune' },
      body: { bolt11: 'lnbc1', maxfee: '7000msat' },
    });
  });

  test.each([
    ['not paid', 205, 'Could not find a route'],
    ['not paid', 207, 'Invoice expired'],
    ['not paid', 210, 'Ran out of routes'],
    ['not paid', 1502, 'Not permitted'],
    ['open', 201, 'Already paid'],
    ['open', 200, 'Timed out with a payment in progress'],
  ])('%s: code %i', async (outcome, code, message) => {
    answer = { status: 500, json: { code, message } };
    expect(await outcomeOf((await cln()).pay('lnbc1', terms))).toEqual([outcome, message]);
  });

  test('open: an answer of something else', async () => {
    answer = { status: 502, text: '<html>' };
    expect(await outcomeOf((await cln()).pay('lnbc1', terms))).toEqual(['open', 'no final answer (status 502)']);
    answer = { json: { status: 'pending' } };
    expect(await outcomeOf((await cln()).pay('lnbc1', terms))).toEqual(['open', 'no final answer (status 200)']);
  });

  test.each<[string, object[], unknown]>([
    ['the preimage of a complete one', [{ status: 'failed' }, { status: 'complete', preimage }], preimage],
    ['nothing where all have failed', [{ status: 'failed' }], null],
    ['nothing where there is none', [], null],
    [
      'no answer while one is pending',
      [{ status: 'failed' }, { status: 'pending' }],
      ['open', 'the payment is under way'],
    ],
  ])('tells of earlier payments: %s', async (_what, pays, told) => {
    answer = { json: { pays } };
    expect(await outcomeOf((await cln()).find('lnbc1', hash))).toEqual(told);
    expect(node.asked[0]).toMatchObject({ path: '/v1/listpays', body: { payment_hash: hash } });
  });

  test('does not tell of earlier payments where it fails', async () => {
    answer = { status: 401, json: { code: 1502, message: 'Not permitted' } };
    expect(await outcomeOf((await cln()).find('lnbc1', hash))).toEqual(['open', 'Not permitted']);
  });

  test('needs its rune, and is the only wallet', async () => {
    await expect(payerFrom({ CLN_PAYER_URL: node.url })).rejects.toThrow('CLN_PAYER_RUNE must hold the rune');
    await expect(payerFrom({ CLN_PAYER_URL: node.url, PAYER_URL: node.url })).rejects.toThrow('set one of');
  });
});

describe('a phoenixd node', () => {
  const phoenixd = () => payer({ PHOENIXD_PAYER_URL: node.url, PHOENIXD_PAYER_PASSWORD: 'pass' });

  test('is asked to pay, and returns the preimage', async () => {
    answer = { json: { recipientAmountSat: 1, routingFeeSat: 4, paymentHash: hash, paymentPreimage: preimage } };
    expect(await (await phoenixd()).pay('lnbc1', terms)).toBe(preimage);
    const authorization = `Basic ${Buffer.from(':pass').toString('base64')}`;
    expect(node.asked[0]).toMatchObject({ path: '/payinvoice', headers: { authorization } });
  });

  test.each<[string, typeof answer, string]>([
    ['not paid', { json: { paymentHash: hash, reason: 'no route' } }, 'no route'],
    ['not paid', { status: 401, text: 'Invalid authentication' }, 'the node refuses (status 401)'],
    ['open', { status: 500, text: 'oops' }, 'no final answer (status 500)'],
    ['open', { status: 500, json: { reason: 'time-out' } }, 'no final answer (status 500)'],
  ])('%s: %j', async (outcome, said, reason) => {
    answer = said;
    expect(await outcomeOf((await phoenixd()).pay('lnbc1', terms))).toEqual([outcome, reason]);
  });

  test('tells of a complete payment, and of no other for certain', async () => {
    answer = { json: { isPaid: true, preimage } };
    expect(await (await phoenixd()).find('lnbc1', hash)).toBe(preimage);
    expect(node.asked[0]).toMatchObject({ path: `/payments/outgoingbyhash/${hash}` });
    answer = { json: { isPaid: false, preimage: null } };
    expect(await outcomeOf((await phoenixd()).find('lnbc1', hash))).toEqual(['open', 'the payment is not complete']);
    answer = { status: 404, text: 'not found' };
    expect(await outcomeOf((await phoenixd()).find('lnbc1', hash))).toEqual(['open', 'no final answer (status 404)']);
  });

  test('needs its password', async () => {
    await expect(payerFrom({ PHOENIXD_PAYER_URL: node.url })).rejects.toThrow('must hold the http-password');
  });
});
