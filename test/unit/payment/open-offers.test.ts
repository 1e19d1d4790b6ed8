import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEndpoint } from '../../../src/catalogue/endpoint.ts';
import { createUsdcCheckout } from '../../../src/payment/checkout.ts';
import { PaymentRefused } from '../../../src/payment/refusal.ts';
import type { RailProbes } from '../../../src/payment/settling.ts';
import { checkAccepted } from '../../../src/payment/usdc/authorization.ts';
import { createOffer, offersUnder, termsOf } from '../../../src/wiring/surfaces.ts';
import { challengeOf } from '../../support/service/challenge-of.ts';
import { latchedEndpoint } from '../../support/service/latch.ts';
import { PLAIN_RAILS, TERMS } from '../../support/service/terms.ts';

const { endpoint, path } = latchedEndpoint();
const offer = createOffer(endpoint as never, TERMS);
const challenge = challengeOf(offer);
const PLAIN = {
  scheme: 'exact',
  network: 'eip155:5042',
  amount: '1000',
  asset: TERMS.usdc,
  payTo: TERMS.payTo,
  // Seven days and a hundred seconds.
  maxTimeoutSeconds: 604_900,
  extra: { name: 'USDC', version: '2', assetTransferMethod: 'eip3009', decimals: 6 },
};
const fail = (): never => {
  throw new Error('this is not asked for');
};
const probe = (ok: boolean): RailProbes => ({ channels: { ok, detail: '' } });
const decoded = (header: string) => JSON.parse(Buffer.from(header, 'base64').toString('utf8'));

describe('an offer', () => {
  test('asks for the price, in the token of the configured chain, to the seller', () => {
    expect(offer.requirement).toEqual(PLAIN);
    expect([offer.price, offer.accepts[0]]).toEqual([1000n, offer.requirement]);
  });

  test('names the Gateway’s contract as the second way to pay where that rail is on, and only there', () => {
    expect(offer.accepts).toHaveLength(2);
    expect(offer.accepts[1]).toMatchObject({
      amount: '1000',
      extra: { verifyingContract: TERMS.rails.gateway?.wallet },
    });
    expect(createOffer(endpoint as never, { ...TERMS, rails: PLAIN_RAILS }).accepts).toEqual([PLAIN]);
  });

  test('has channels once their contract was found, and while nobody has looked again, until it is not found', () => {
    const channels = { authorizerKey: `0x${'11'.repeat(32)}`, withdrawDelaySeconds: 604_800, minDeposit: 1_000_000n };
    const rails = { ...PLAIN_RAILS, channels: channels as never };
    const { network, usdc, payTo: seller, publicOrigin, chain } = TERMS;
    const config = { network: { ...chain, caip2: network, usdc } as never, seller, publicOrigin, rails };
    let probes: RailProbes = {};
    const offers = offersUnder(config, { probes: () => probes });
    const schemes = () => offers(endpoint as never).accepts.map(({ scheme }) => scheme);
    const seen = [schemes()];
    for (const next of [probe(true), {}, probe(false), {}]) {
      probes = next;
      seen.push(schemes());
    }
    const both = ['exact', 'batch-settlement'];
    expect(seen).toEqual([['exact'], both, both, ['exact'], ['exact']]);
  });

  test('leaves the plain entry out below the price from which it is sold, and without another way the 402 is a 503', () => {
    const { network, usdc, payTo: seller, publicOrigin, chain } = TERMS;
    const schemesFrom = (exactFrom: bigint | null, rails = TERMS.rails) => {
      const settings = { network: { ...chain, caip2: network, usdc } as never, seller, publicOrigin };
      const offers = offersUnder({ ...settings, rails: { ...rails, exactFrom } });
      const asked = { offer: () => offers(endpoint as never), purchase: fail, sources: {}, words: () => '' };
      const checkout = createUsdcCheckout(endpoint as never, asked);
      const ask = {
        method: 'GET',
        target: path,
        query: {},
        hasBody: false,
        client: fail,
        identity: fail,
        signal: fail,
      };
      return {
        names: offers(endpoint as never).accepts.map(({ extra }) => extra.name),
        demand: () => checkout.demand(ask),
      };
    };
    expect(schemesFrom(1000n).names).toEqual(['USDC', 'GatewayWalletBatched']);
    expect(schemesFrom(1001n).names).toEqual(['GatewayWalletBatched']);
    expect(schemesFrom(null).names).toEqual(['GatewayWalletBatched']);
    expect(schemesFrom(null).demand).not.toThrow();
    const bare = schemesFrom(1001n, PLAIN_RAILS);
    expect(bare.names).toEqual([]);
    expect(bare.demand).toThrow(expect.objectContaining({ status: 503, code: 'settlement_unavailable' }));
  });

  test('is not made for a route without a price', () => {
    const free = defineEndpoint({
      path: '/test/free',
      access: 'free',
      label: 'Free',
      summary: 'Costs nothing.',
      params: z.object({}),
      result: z.object({}),
      example: { params: {}, result: {} },
      run: async () => ({}),
    });
    expect(() => createOffer(free as never, TERMS)).toThrow('/test/free has no price');
  });
});

describe('the terms of a configuration', () => {
  const config = {
    network: { caip2: TERMS.network, usdc: TERMS.usdc, ...TERMS.chain },
    seller: TERMS.payTo,
    publicOrigin: TERMS.publicOrigin,
  };

  test('are its network, token, seller, origin, chain and rails', () => {
    expect(termsOf({ ...config, rails: TERMS.rails } as never)).toEqual({
      ...TERMS,
      chain: config.network,
    });
  });
});

describe('a challenge', () => {
  test('is base64 of JSON whatever the length of its address, and says what to pay for what', () => {
    for (const target of [path, `${path}?t`, `${path}?ta`, `${path}?tag`, `${path}?tag=ä`]) {
      const header = challenge(target);
      expect(Buffer.from(header, 'base64').toString('base64')).toBe(header);
      expect(decoded(header)).toMatchObject({
        x402Version: 2,
        error: 'Payment required',
        accepts: offer.accepts,
        resource: { description: endpoint.summary, mimeType: 'application/json' },
      });
    }
  });

  test('says why a payment was refused, on the listed address and on any other', () => {
    for (const target of [path, `${path}?tag=a`])
      expect(decoded(challenge(target, 'payment_already_used'))).toMatchObject({
        error: 'payment_already_used',
        resource: { url: `${TERMS.publicOrigin}${target}` },
      });
  });

  test('names the address that was asked for, and no other host than ours', () => {
    const url = (target: string) => decoded(challenge(target)).resource.url;
    expect(url(path)).toBe(`${TERMS.publicOrigin}${path}`);
    expect(url(`${path}?tag=a`)).toBe(`${TERMS.publicOrigin}${path}?tag=a`);
    expect(url(`https://elsewhere.example${path}?tag=a`)).toBe(`${TERMS.publicOrigin}${path}?tag=a`);
  });

  test('leaves the query out of an address that is too long for a header, and cuts a path that is', () => {
    const url = (target: string): string => decoded(challenge(target)).resource.url;
    const query = (length: number) => `${path}?tag=${'a'.repeat(length - path.length - 5)}`;
    expect(url(query(1024))).toBe(`${TERMS.publicOrigin}${query(1024)}`);
    expect(url(query(1025))).toBe(`${TERMS.publicOrigin}${path}`);
    expect(url(`/${'b'.repeat(2000)}`)).toBe(`${TERMS.publicOrigin}/${'b'.repeat(1023)}`);
  });
});

describe('what a payment accepts', () => {
  const reasonFor = (accepted: object): string | null => {
    try {
      checkAccepted(accepted as never, offer.requirement);
      return null;
    } catch (error) {
      expect(error).toBeInstanceOf(PaymentRefused);
      return (error as PaymentRefused).reason;
    }
  };
  const OTHER = 'No matching payment requirements';

  test('is the offer’s requirement; addresses may be written in either case, and extra may hold more', () => {
    expect(reasonFor(PLAIN)).toBeNull();
    const upper = (address: string) => `0x${address.slice(2).toUpperCase()}`;
    expect(reasonFor({ ...PLAIN, asset: upper(PLAIN.asset), payTo: upper(PLAIN.payTo) })).toBeNull();
    expect(reasonFor({ ...PLAIN, extra: { ...PLAIN.extra, note: 'mine' } })).toBeNull();
  });

  test('on another network is refused by name', () => {
    expect(reasonFor({ ...PLAIN, network: 'eip155:1' })).toBe('invalid_exact_evm_network_mismatch');
    expect(reasonFor({ ...PLAIN, network: 5042 })).toBe(OTHER);
  });

  test.each<[string, object]>([
    ['scheme', { scheme: 'upto' }],
    ['amount', { amount: '999' }],
    ['amount, as a number', { amount: 1000 }],
    ['time', { maxTimeoutSeconds: 60 }],
    ['token', { asset: TERMS.payTo }],
    ['token, as no text', { asset: 7 }],
    ['seller', { payTo: TERMS.usdc }],
    ['name of the token’s domain', { extra: { ...PLAIN.extra, name: 'USD Coin' } }],
    ['version of the token’s domain', { extra: { ...PLAIN.extra, version: '1' } }],
    ['way to transfer', { extra: { ...PLAIN.extra, assetTransferMethod: 'permit2' } }],
    ['extra that lacks something', { extra: { name: 'USDC' } }],
    ['extra that is a text', { extra: 'USDC' }],
    ['extra that is not there', { extra: undefined }],
  ])('with another %s is refused', (_, change) => {
    expect(reasonFor({ ...PLAIN, ...change })).toBe(OTHER);
  });
});
