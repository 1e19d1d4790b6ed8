import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encodePaymentRequiredHeader } from '@x402/core/http';
import type { PaymentRequired } from '@x402/core/types';
import { authorizationTypes } from '@x402/evm';
import { Credential } from 'mppx';
import { Types } from 'mppx/evm';
import { verifyTypedData } from 'viem';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createAccount } from '../../../dev/network.ts';
import { payHere } from '../../support/service/pay-here.ts';
import { type StandIn, startSellerStandIn } from '../../support/service/seller-stand-in.ts';

const ASSET = '0x3600000000000000000000000000000000000000';
const payer = createAccount();
const payTo = createAccount().address;
const transaction = `0x${'ab'.repeat(32)}`;
/** The published vector of the challenge's nonce. */
const VECTOR = { id: '19ldYz0MwccJD78BazWxp6T-4KiQ7i78rkpO1Mz2wWU', realm: 'percall.example' };
const VECTOR_NONCE = '0xf03976f73f7ca5817914c97630f9625b5dc469a2d7e242356e7e3680a2ae9730';

let seller: StandIn;
/** Of each test: the wallet's record is in it. */
let folder: string;
let discovery: StandIn;
let listings: object[];
let searches: string[];

const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const secondsFromNow = (seconds: number) => Math.floor(Date.now() / 1000) + seconds;
const timeText = (seconds: number) => new Date(seconds * 1000).toISOString().replace('.000Z', 'Z');
const EXPIRES = timeText(secondsFromNow(600));

/** A challenge of MPP's method evm, with parts of it changed. */
function evm({ request = {}, details = {}, params = {} }: Record<string, object> = {}): string {
  const methodDetails = { chainId: 5042, credentialTypes: ['authorization'], decimals: 6, ...details };
  const given = {
    ...VECTOR,
    method: 'evm',
    intent: 'charge',
    expires: EXPIRES,
    opaque: base64url({ n: 'x' }),
    request: base64url({ amount: '2000', currency: ASSET, methodDetails, recipient: payTo, ...request }),
    ...params,
  };
  const parts = Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [`${name}="${value}"`]));
  return `Payment ${parts.join(', ')}`;
}

function x402(amount: string, target: string): string {
  const extra = { name: 'USDC', version: '2' };
  const requirement = { scheme: 'exact', network: 'eip155:5042', asset: ASSET, amount, payTo, extra };
  const accepts = [{ ...requirement, maxTimeoutSeconds: 60 }];
  return encodePaymentRequiredHeader({
    x402Version: 2,
    resource: { url: seller.origin + target },
    accepts,
  } as PaymentRequired);
}

beforeAll(async () => {
  seller = await startSellerStandIn();
  discovery = await startSellerStandIn();
});
afterAll(async () => {
  await seller?.stop();
  await discovery?.stop();
});
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'percall-pay-'));
  listings = [];
  searches = [];
  seller.reset();
  discovery.reset();
  seller.ask = () => ({ 'www-authenticate': evm() });
  const reference = { method: 'evm', reference: transaction, status: 'success', timestamp: EXPIRES };
  seller.answer = () => ({ status: 200, headers: { 'payment-receipt': base64url(reference) }, body: '{"answer":42}' });
  discovery.documents = (path) => {
    if (!path.startsWith('/v1/market/search')) return null;
    searches.push(path);
    return { results: listings };
  };
});

afterEach(() => rmSync(folder, { recursive: true }));

function pay(
  path: string,
  flags: string[] = [],
  env: Record<string, string> = { BUYER_PRIVATE_KEY: payer.privateKey },
) {
  return payHere([`${seller.origin}${path}`, ...flags], { env, folder });
}

const listed = (path: string, priceUsd: string, more: object = {}) => ({
  url: seller.origin + path,
  method: 'GET',
  priceUsd,
  ...more,
});
const priced = (amount: string) => ({ paths: { '/thing': { get: { 'x-payment-info': { price: { amount } } } } } });

describe('npm run pay over MPP (evm)', () => {
  test('signs one authorization whose nonce binds the challenge, and prints only the body on standard output', async () => {
    const { code, stdout, stderr } = await pay('/thing');
    expect({ code, stdout }, stderr).toEqual({ code: 0, stdout: '{"answer":42}' });
    expect(stderr).toContain(`paid:    0.002 USDC, transaction ${transaction}`);
    expect(seller.presented).toHaveLength(1);

    const credential = Credential.deserialize<Record<string, string>>(String(seller.presented[0]?.authorization));
    const { challenge, payload, source } = credential;
    expect(challenge).toMatchObject({ ...VECTOR, method: 'evm', intent: 'charge', expires: EXPIRES });
    expect(payload.nonce).toBe(VECTOR_NONCE);
    expect(payload.nonce).toBe(Types.challengeHash(challenge as never));
    expect(payload.validBefore).toBe(String(Date.parse(EXPIRES) / 1000));
    expect(source).toBe(`did:pkh:eip155:5042:${payload.from}`);
    const { from = '', to = '', value = '', validBefore = '', nonce = '', signature = '' } = payload;
    const message = { from, to, value: BigInt(value), validAfter: 0n, validBefore: BigInt(validBefore), nonce };
    const domain = { name: 'USDC', version: '2', chainId: 5042, verifyingContract: ASSET };
    const signed = {
      address: from,
      domain,
      types: authorizationTypes,
      primaryType: 'TransferWithAuthorization',
      message,
      signature,
    };
    expect({ from: from.toLowerCase(), to: to.toLowerCase(), value }).toEqual({
      from: payer.address.toLowerCase(),
      to: payTo.toLowerCase(),
      value: '2000',
    });
    expect(await verifyTypedData(signed as never)).toBe(true);
  });

  test('presents the same authorization again while the seller is busy, and never signs a second one', async () => {
    seller.answer = (count) =>
      count < 3
        ? { status: 503, headers: { 'retry-after': '1' }, body: '{}' }
        : { status: 200, headers: {}, body: '{}' };
    const { code, stderr } = await pay('/thing');
    expect(code, stderr).toBe(0);
    expect(seller.presented.map(({ authorization }) => authorization)).toEqual(
      Array(3).fill(seller.presented[0]?.authorization),
    );
    seller.reset();
    seller.ask = () => ({ 'www-authenticate': evm() });
    seller.answer = () => ({
      status: 402,
      headers: { 'www-authenticate': evm({ params: { id: 'fresh' } }) },
      body: '{"detail":"verification failed"}',
    });
    const refused = await pay('/other');
    expect({ code: refused.code, presented: seller.presented.length }).toEqual({ code: 5, presented: 1 });
    expect(refused.stderr).toContain('status 402: verification failed; the authorization can be charged until');
  });

  test('signs for ten minutes at most, also where the offer stays open for a day', async () => {
    seller.ask = () => ({ 'www-authenticate': evm({ params: { expires: timeText(secondsFromNow(86_400)) } }) });
    const most = secondsFromNow(600) + 60;
    expect((await pay('/thing')).code).toBe(0);
    const { payload } = Credential.deserialize<Record<string, string>>(String(seller.presented[0]?.authorization));
    expect(Number(payload.validBefore)).toBeLessThan(most);
  });

  test('says with which nonce the outcome is open when the seller cannot decide', async () => {
    seller.answer = () => ({ status: 409, headers: { 'retry-after': '1' }, body: '{"detail":"busy"}' });
    const { code, stderr } = await pay('/thing');
    expect([code, new Set(seller.presented.map(({ authorization }) => authorization)).size]).toEqual([4, 1]);
    expect(stderr).toContain(
      `the authorization can be charged until ${Date.parse(EXPIRES) / 1000} (Unix seconds), its nonce is ${VECTOR_NONCE}`,
    );
  });

  test.each<[string, Record<string, object>, string]>([
    ['has expired', { params: { expires: timeText(secondsFromNow(-60)) } }, 'the offer expired'],
    ['asks for another token', { request: { currency: `0x${'11'.repeat(20)}` } }, 'no USDC that is known here'],
    ['asks on another chain', { details: { chainId: 8453 } }, 'no USDC that is known here'],
    ['takes no authorization', { details: { credentialTypes: ['transaction'] } }, 'it does not take an authorization'],
    ['names no credential types', { details: { credentialTypes: undefined } }, 'it names no credential types'],
    ['splits the amount', { details: { splits: [{ amount: '1', recipient: payTo }] } }, 'it splits the amount'],
    ['counts in other decimals', { details: { decimals: 18 } }, 'its asset has not 6 decimals'],
    ['asks for a session', { params: { intent: 'session' } }, 'nothing on offer is paid'],
    [
      'is above the ceiling',
      { request: { amount: '10001' } },
      '0.010001 USDC is above the ceiling of 0.01 USDC (--max-usdc)',
    ],
  ])('signs nothing when the offer %s', async (_how, changes, reason) => {
    seller.ask = () => ({ 'www-authenticate': evm(changes) });
    const { code, stdout, stderr } = await pay('/thing');
    expect({ code, stdout, presented: seller.presented }, stderr).toEqual({ code: 3, stdout: '', presented: [] });
    expect(stderr).toContain(reason);
  });

  test('a dry run needs no key and signs nothing', async () => {
    const { code, stderr } = await pay('/thing', ['--dry-run'], {});
    expect({ code, presented: seller.presented }, stderr).toEqual({ code: 0, presented: [] });
    expect(stderr).toContain('0.002 USDC on eip155:5042');
  });

  test('an x402 entry that cannot be paid in USDC is told, with what is wrong with it, and no key is asked for', async () => {
    const entry = { scheme: 'exact', network: 'solana:mainnet', asset: 'USDC', amount: '1', payTo: 'someone' };
    const header = { x402Version: 2, resource: { url: `${seller.origin}/thing` }, accepts: [entry] };
    seller.ask = () => ({ 'payment-required': btoa(JSON.stringify(header)) });
    const { code, stderr } = await pay('/thing', [], {});
    expect(code).toBe(3);
    expect(stderr).toContain(
      'nothing on offer is paid in a way that is known here; nothing on offer is a plain USDC transfer',
    );
  });

  test('x402 comes first where both are offered, and --protocol picks the other', async () => {
    seller.ask = (target) => ({ 'www-authenticate': evm(), 'payment-required': x402('2000', target) });
    expect((await pay('/thing', ['--dry-run'], {})).stderr).not.toContain('over MPP');
    expect((await pay('/thing', ['--dry-run', '--protocol', 'mpp'], {})).stderr).toContain('over MPP');
    const none = await pay('/thing', ['--protocol', 'l402']);
    expect([none.code, none.stderr]).toEqual([3, expect.stringContaining('nothing on offer is paid by l402')]);
  });

  test('the same header on another status than 402 asks for nothing', async () => {
    seller.status = 401;
    const { code, stderr } = await pay('/thing');
    expect({ code, presented: seller.presented }).toEqual({ code: 1, presented: [] });
    expect(stderr).toContain('status 401 without a challenge');
  });
});

describe('npm run pay compares the price with a discovery search', () => {
  const flags = () => ['--discovery', discovery.origin];

  test.each([
    ['over x402', (amount: string, target: string) => ({ 'payment-required': x402(amount, target) })],
    ['over MPP', (amount: string) => ({ 'www-authenticate': evm({ request: { amount } }) })],
  ])('and signs nothing above it, %s', async (_how, ask) => {
    listings = [listed('/thing', '0.0019', { rail: 'direct', direct: null })];
    seller.documents = (path) => (path === '/openapi.json' ? priced('1') : null);
    seller.ask = (target) => ask('2000', target);
    const { code, stderr } = await pay('/thing?a=1', flags());
    expect({ code, presented: seller.presented }, stderr).toEqual({ code: 3, presented: [] });
    const { host } = new URL(discovery.origin);
    expect(stderr).toContain(
      `0.002 USDC is above the price in the search of ${host} of 0.0019 USDC; nothing was signed`,
    );
    expect(searches[0]).toContain(`seller=${encodeURIComponent(new URL(seller.origin).host)}`);
  });

  test('and pays what it lists, whatever the seller’s own list says', async () => {
    listings = [listed('/other', '0.001'), listed('/th{x}', '0.001'), listed('/{id}', '0.002')];
    seller.documents = (path) => (path === '/openapi.json' ? priced('0.001') : null);
    const { code, stderr } = await pay('/thing', [], {
      BUYER_PRIVATE_KEY: payer.privateKey,
      DISCOVERY_URL: discovery.origin,
    });
    expect(code, stderr).toBe(0);
    expect(stderr).toContain('listed:  0.002 USDC (the price in the search of');
  });

  test('of the plain transfer, where the listing is one of a gateway', async () => {
    listings = [listed('/thing', '0.0001', { rail: 'gateway', direct: { url: 'x', priceUsd: '0.002' } })];
    expect((await pay('/thing', flags())).code).toBe(0);
  });

  test('else with the seller’s own list', async () => {
    seller.documents = (path) => (path === '/openapi.json' ? priced('0.001') : null);
    const unlisted = await pay('/thing', flags());
    expect([unlisted.code, unlisted.stderr]).toEqual([
      3,
      expect.stringContaining("above the seller's own listed price of 0.001 USDC"),
    ]);
    discovery.documents = () => null;
    const silent = await pay('/thing', flags());
    expect([silent.code, silent.stderr]).toEqual([
      3,
      expect.stringContaining("above the seller's own listed price of 0.001 USDC"),
    ]);
    expect(silent.stderr).toContain('gives no answer');
    expect(seller.presented).toEqual([]);
  });

  test('by the words of the path, where the seller has more routes than one answer holds', async () => {
    const others = Array.from({ length: 50 }, (_, at) => listed(`/other/${at}`, '0.0001'));
    discovery.documents = (path) => {
      searches.push(path);
      return { results: path.includes('q=thing') ? [listed('/thing', '0.001')] : others };
    };
    const { code, stderr } = await pay('/thing', flags());
    expect([code, searches.length], stderr).toEqual([3, 2]);
    expect(stderr).toContain('of 0.001 USDC');
  });
});
