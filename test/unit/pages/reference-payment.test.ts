import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEndpoint } from '../../../src/catalogue/endpoint.ts';
import { createOffer, type Terms } from '../../../src/wiring/surfaces.ts';
import { seed, seededRandom } from '../../support/random.ts';
import { challengeOf } from '../../support/service/challenge-of.ts';
import { PLAIN_RAILS, withGateway } from '../../support/service/terms.ts';

type Fact = [label: string, text: string];
interface Description {
  header: string;
  groups: { title: string; facts: Fact[] }[];
  json: string | null;
}
interface Script {
  describePayment(headers: Record<string, string>): Description | null;
  summarisePayment(description: Description | null): string;
}

// The script for browsers, run here. It is not a TypeScript module.
const script = new URL('../../../src/pages/assets/reference-payment.js', import.meta.url);
const { describePayment, summarisePayment }: Script = await import(script.href);

const PAY_TO = `0x${'5e'.repeat(20)}` as const;
const USDC = `0x36${'0'.repeat(38)}` as const;
const TERMS: Terms = {
  network: 'eip155:5042',
  usdc: USDC,
  payTo: PAY_TO,
  publicOrigin: 'https://api.example.com',
  chain: { name: 'Arc', isPlayMoney: false },
  rails: PLAIN_RAILS,
};
const LIGHTNING = 'lnbtc:000000000019d6689c085ae165831e93';

const pricedEndpoint = defineEndpoint({
  path: '/chain/thing',
  access: 'paid',
  priceUsd: '0.002',
  label: 'Thing',
  summary: 'A thing.',
  notFor: null,
  tags: '',
  ofChain: false,
  params: z.object({ id: z.string() }),
  result: z.object({ id: z.string() }),
  example: { params: { id: 'a' }, result: { id: 'a' } },
  run: async ({ id }) => ({ id }),
});

const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64');
const required = (value: string) => describePayment({ 'payment-required': value });
const priceOf = (amount: string, network: string) =>
  required(base64({ accepts: [{ network, amount }] }))?.groups[0]?.facts.find(([label]) => label === 'Price')?.[1];

describe('a demand for payment', () => {
  test('is described with its terms', () => {
    const challenge = challengeOf(createOffer(pricedEndpoint, TERMS))('/v1/paid/chain/thing?id=a', 'invalid_payload');
    const described = required(challenge);
    expect(described?.groups).toEqual([
      {
        title: 'How to pay',
        facts: [
          ['Price', '0.002 USDC (2000 base units)'],
          ['Pay to', PAY_TO],
          ['Network', 'eip155:5042'],
          ['Asset', USDC],
          ['Valid for', 'at most 7 days 1 minute 40 seconds (604900 s)'],
          ['Scheme', 'exact, eip3009, USDC'],
        ],
      },
      {
        title: 'Why',
        facts: [
          ['Reason', 'invalid_payload'],
          ['For', 'https://api.example.com/v1/paid/chain/thing?id=a'],
        ],
      },
    ]);
    expect(JSON.parse(described?.json ?? '')).toEqual(JSON.parse(Buffer.from(challenge, 'base64').toString()));
    expect(summarisePayment(described)).toBe(
      `Price: 0.002 USDC (2000 base units). Pay to: ${PAY_TO}. Network: eip155:5042.`,
    );
  });

  test('names each way to pay', () => {
    const offer = createOffer(pricedEndpoint, { ...TERMS, rails: withGateway(`0x${'77'.repeat(20)}`) });
    const titles = required(challengeOf(offer)('/v1/paid/chain/thing'))?.groups.map(({ title }) => title);
    expect(titles).toEqual(['Way to pay 1 of 2', 'Way to pay 2 of 2', 'Why']);
  });

  test('over Lightning is shown in sats, with the invoice', () => {
    const extra = { assetTransferMethod: 'bolt11', invoice: 'lnbc210n1…' };
    const way = { scheme: 'exact', network: LIGHTNING, amount: '21000', asset: 'BTC', payTo: '02ab', extra };
    const { facts } = required(base64({ accepts: [{ ...way, maxTimeoutSeconds: 300 }] }))?.groups[0] ?? { facts: [] };
    expect(Object.fromEntries(facts)).toMatchObject({
      Price: '21 sat (21000 msat)',
      Invoice: 'lnbc210n1…',
      'Valid for': 'at most 5 minutes (300 s)',
    });
  });

  test(`loses no digit of any amount (seed ${seed})`, () => {
    const random = seededRandom('reference-payment');
    for (let round = 0; round < 300; round += 1) {
      const units = BigInt(Math.floor(random() * 2 ** (random() * 50))) * 10n ** BigInt(Math.floor(random() * 6));
      for (const [network, decimals] of [['eip155:5042', 6] as const, [LIGHTNING, 3] as const]) {
        const [whole = '', fraction = ''] = (priceOf(String(units), network) ?? '').split(' ')[0]?.split('.') ?? [];
        expect(BigInt(whole + fraction.padEnd(decimals, '0'))).toBe(units);
        expect(fraction).not.toMatch(/0$/);
      }
    }
  });
});

describe('a receipt', () => {
  const receipt = (value: object) => describePayment({ 'payment-response': base64(value) });

  test('says that it is settled, and where', () => {
    const settled = { success: true, transaction: '0xabc', network: 'eip155:5042', amount: '500', payer: '0xdef' };
    expect(receipt(settled)?.groups[0]?.facts).toEqual([
      ['Settled', 'yes'],
      ['Price', '0.0005 USDC (500 base units)'],
      ['Transaction', '0xabc'],
      ['Network', 'eip155:5042'],
      ['Payer', '0xdef'],
    ]);
  });

  test('that was refused never reads as settled, and does not say that nothing can be taken any more', () => {
    const refused = receipt({
      success: false,
      errorReason: 'insufficient_funds',
      transaction: '',
      network: 'eip155:5042',
    });
    expect(summarisePayment(refused)).toBe('Settled: no. Reason: insufficient_funds. Network: eip155:5042.');
    expect(receipt({ transaction: '0xabc' })?.groups[0]?.facts[0]).toEqual(['Settled', 'no']);
  });
});

describe('a header without a known form', () => {
  test('an answer without payment headers has no description', () => {
    expect(describePayment({ 'content-type': 'application/json' })).toBeNull();
    expect(summarisePayment(null)).toBe('');
  });

  test.each([
    '',
    '%%%',
    'YQ',
    Buffer.from('{"a":').toString('base64'),
    Buffer.from([0x22, 0xff, 0x22]).toString('base64'),
  ])('a header that is not JSON in base64 is reported as unreadable: %j', (value) => {
    const described = required(value);
    expect(described).toEqual({ header: 'PAYMENT-REQUIRED', groups: [], json: null });
    expect(summarisePayment(described)).toBe('Its PAYMENT-REQUIRED header cannot be read.');
  });

  test.each([[5], ['text'], [[]], [{}], [{ accepts: [{ amount: 'much' }] }], [{ accepts: [null] }]])(
    'JSON of another shape is shown as it is: %j',
    (value) => {
      expect(required(base64(value))).toEqual({
        header: 'PAYMENT-REQUIRED',
        groups: [],
        json: JSON.stringify(value, null, 2),
      });
    },
  );
});
