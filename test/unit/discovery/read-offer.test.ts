import { describe, expect, test } from 'vitest';
import { type Challenge, readChallenge, readOffer } from '../../../src/discovery/challenge.ts';
import { accept, acceptV1, base64, GATEWAY_EXTRA, NETWORK, PAY_TO, USDC } from '../../support/market/market.ts';

const PAYABLE = { network: NETWORK, usdc: USDC };
const read = (headers: Record<string, string>, body: unknown = '') =>
  readChallenge({ headers, read: async () => Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)) });
/** An object that cannot be made a text. */
const NO_TEXT = { toString: 1, valueOf: 1 };
const v2 = (accepts: unknown[]): Challenge => ({ version: 2, accepts, whole: {} });
const v1 = (accepts: unknown[]): Challenge => ({ version: 1, accepts, whole: {} });
const offer = (challenge: Challenge) => readOffer(challenge, PAYABLE);

describe('a challenge', () => {
  test('of version 2 is read from the header, and the body is not read', async () => {
    const whole = { x402Version: 2, accepts: [accept()] };
    const never = () => Promise.reject(new Error('the body was read'));
    const found = await readChallenge({ headers: { 'payment-required': base64(whole) }, read: never });
    expect(found).toEqual({ version: 2, accepts: [accept()], whole });
  });

  test('of version 1 is read from the body', async () => {
    const whole = { x402Version: 1, accepts: [acceptV1()] };
    expect(await read({}, whole)).toMatchObject({ version: 1, whole: JSON.parse(JSON.stringify(whole)) });
  });

  const good = { x402Version: 2, accepts: [accept()] };
  test.each<[string, Record<string, string>, unknown]>([
    ['no base64', { 'payment-required': `${base64(good)}*` }, good],
    ['no JSON', { 'payment-required': base64('{') }, ''],
    ['JSON that is no object', { 'payment-required': base64('null') }, ''],
    ['two headers joined', { 'payment-required': `${base64(good)}, ${base64(good)}` }, ''],
    ['version 1 in the header', { 'payment-required': base64({ ...good, x402Version: 1 }) }, ''],
    ['accepts that is no list', { 'payment-required': base64({ ...good, accepts: {} }) }, ''],
    ['a broken header beside a good body of version 1', { 'payment-required': '?' }, { ...good, x402Version: 1 }],
    ['version 2 in the body alone', {}, good],
    ['a page', {}, '<html>Pay me</html>'],
    ['nothing', {}, ''],
    ['a deep body', {}, '['.repeat(60_000)],
  ])('is unreadable: %s', async (_what, headers, body) => {
    await expect(read(headers, body)).rejects.toMatchObject({ status: 400, code: 'unreadable_challenge' });
  });
});

describe('an offer', () => {
  test('has the exact price in USD, the recipient, and all accepted networks', () => {
    const elsewhere = accept({ network: 'eip155:8453', asset: `0x${'8'.repeat(40)}`, amount: '1' });
    expect(offer(v2([elsewhere, accept()]))).toEqual({
      rail: 'direct',
      priceUsd: '0.002',
      payTo: PAY_TO,
      plainPriceUsd: null,
      networks: ['eip155:8453', NETWORK],
      plainNetworks: ['eip155:8453', NETWORK],
    });
  });

  test('through the gateway has the price without it, when there is one', () => {
    const gateway = accept({ extra: GATEWAY_EXTRA, amount: '1000' });
    expect(offer(v2([gateway]))).toMatchObject({ rail: 'gateway', priceUsd: '0.001', plainPriceUsd: null });
    expect(offer(v2([accept(), gateway]))).toMatchObject({
      rail: 'gateway',
      priceUsd: '0.001',
      plainPriceUsd: '0.002',
    });
  });

  test('of version 1 is maxAmountRequired, whatever else the entry has', () => {
    expect(offer(v1([acceptV1()])).priceUsd).toBe('0.003');
    expect(offer(v1([acceptV1({ amount: '1' })])).priceUsd).toBe('0.003');
    expect(() => offer(v1([accept()]))).toThrow('exact');
    expect(() => offer(v2([acceptV1()]))).toThrow('exact');
  });

  test('accepts the asset in any letter case, and Permit2 without a domain', () => {
    expect(offer(v2([accept({ asset: USDC.toUpperCase().replace('0X', '0x') })])).priceUsd).toBe('0.002');
    expect(offer(v2([accept({ extra: { assetTransferMethod: 'permit2' } })])).priceUsd).toBe('0.002');
  });

  test.each<[string, Record<string, unknown>]>([
    ['another network', { network: 'eip155:8453' }],
    ['our network under a name of its own', { network: 'arc' }],
    ['another asset', { asset: `0x${'1'.repeat(40)}` }],
    ['another scheme', { scheme: 'upto' }],
    ['no amount', { amount: undefined }],
    ['a free call', { amount: '0' }],
    ['a fraction', { amount: '0.5' }],
    ['a negative amount', { amount: '-1' }],
    ['a number for an amount', { amount: 2000 }],
    ['no recipient', { payTo: `0x${'0'.repeat(40)}` }],
    ['no address to pay', { payTo: 'me' }],
    ['no domain to sign for', { extra: undefined }],
    ['half a domain', { extra: { name: 'USDC' } }],
    [
      'a way to pay that clients do not know',
      { extra: { assetTransferMethod: 'erc7710', name: 'USDC', version: '2' } },
    ],
    ['a network that is no text', { network: NO_TEXT }],
    ['a recipient that is no text', { payTo: NO_TEXT }],
    ['a gateway’s wallet that is no text', { extra: { ...GATEWAY_EXTRA, verifyingContract: NO_TEXT } }],
    ['a gateway without a wallet', { extra: { ...GATEWAY_EXTRA, verifyingContract: undefined } }],
  ])('is ignored: %s', (_what, more) => {
    const refused = expect.objectContaining({ status: 400, code: 'not_payable_here' });
    expect(() => offer(v2([accept(more)]))).toThrow(refused);
    // A valid entry beside it counts alone.
    expect(offer(v2([accept(more), accept({ amount: '7' })])).priceUsd).toBe('0.000007');
  });

  test('tells a seller that takes Lightning alone why it is not listed, and lists it once it takes USDC too', () => {
    const lightning = accept({ network: 'lnbtc:000000000019d6689c085ae165831e93', asset: 'BTC', amount: '25000' });
    expect(() => offer(v2([lightning]))).toThrow(
      expect.objectContaining({
        code: 'not_payable_here',
        message: expect.stringMatching(/over Lightning.*add an `exact` entry in USDC/),
      }),
    );
    expect(offer(v2([lightning, accept({})])).rail).toBe('direct');
  });

  test.each([[[]], [[null, 1, 'x', [], {}]]])('of nothing is none: %j', (accepts) => {
    expect(() => offer(v2(accepts))).toThrow('exact');
  });
});
