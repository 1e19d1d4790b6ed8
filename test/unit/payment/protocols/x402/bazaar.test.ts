import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { catalogue } from '../../../../../src/catalogue/catalogue.ts';
import { describeParams } from '../../../../../src/catalogue/params.ts';
import { entriesOn, listedPath, pathOn } from '../../../../../src/catalogue/paths.ts';
import type { Config } from '../../../../../src/config.ts';
import { describeChallenge } from '../../../../../src/discovery/description.ts';
import { bazaarExtension } from '../../../../../src/payment/protocols/x402/bazaar.ts';
import { quotedChallenge } from '../../../../../src/payment/protocols/x402/http.ts';
import { createOffer } from '../../../../../src/wiring/surfaces.ts';
import { challengeOf } from '../../../../support/service/challenge-of.ts';
import { PLAIN_RAILS, TERMS } from '../../../../support/service/terms.ts';

const paid = entriesOn(catalogue, 'paid');
const sold = entriesOn(catalogue, 'lightning');
const decode = (header: string) => JSON.parse(Buffer.from(header, 'base64').toString('utf8'));
/** Every way to pay in USDC at once. */
const ALL_RAILS: Config['rails'] = {
  ...TERMS.rails,
  channels: { authorizerKey: `0x${'11'.repeat(32)}`, withdrawDelaySeconds: 604_800, minDeposit: 1_000_000n } as never,
};
/** The length of each USDC route's header, for its listed path and for the query of its example. */
const lengths = (rails: Config['rails']) =>
  paid.flatMap((endpoint) => {
    const challenge = challengeOf(createOffer(endpoint, { ...TERMS, rails }));
    const path = pathOn(endpoint, 'paid');
    const query = new URLSearchParams(endpoint.example.params);
    return [challenge(path).length, challenge(`${path}?${query}`).length];
  });

describe('the header of a 402', () => {
  test('has at most 1.5 KiB on most USDC routes, and at most 2 KiB on any, as the service is configured by default', () => {
    const listed = lengths(PLAIN_RAILS).filter((_, at) => at % 2 === 0);
    expect(listed).toHaveLength(paid.length);
    expect(listed.filter((length) => length <= 1.5 * 1024).length).toBeGreaterThan(listed.length / 2);
    expect(Math.max(...lengths(PLAIN_RAILS))).toBeLessThanOrEqual(2 * 1024);
  });

  test('has at most 3 KiB on every USDC route with every way to pay', () => {
    const all = lengths(ALL_RAILS);
    expect(Math.min(...all)).toBeGreaterThan(Math.min(...lengths(PLAIN_RAILS)));
    expect(Math.max(...all)).toBeLessThanOrEqual(3 * 1024);
  });

  test('has at most 5 KiB for the longest URL that it names', () => {
    const sizes = paid.map((endpoint) => {
      const path = pathOn(endpoint, 'paid');
      const long = challengeOf(createOffer(endpoint, { ...TERMS, rails: ALL_RAILS }))(
        `${path}?q=${'x'.repeat(1021 - path.length)}`,
      );
      expect(decode(long).resource.url).toHaveLength(TERMS.publicOrigin.length + 1024);
      return long.length;
    });
    expect(Math.max(...sizes)).toBeLessThanOrEqual(5 * 1024);
  });

  test('has at most 3 KiB on every Lightning route, and its body says the same', () => {
    const requirement = {
      scheme: 'exact',
      network: `lnbtc:${'0'.repeat(32)}`,
      asset: 'BTC',
      amount: '125000',
      payTo: '02'.repeat(33),
      maxTimeoutSeconds: 300,
      extra: { invoice: 'l'.repeat(400), requestHash: 'f'.repeat(64), requestBindingParams: { headers: [] } },
    } as never;
    for (const endpoint of sold) {
      const url = `${TERMS.publicOrigin}${pathOn(endpoint, 'lightning')}`;
      const order = { endpoint, url, hint: 'Pay the invoice.' } as never;
      const offered = { requirement, priceUsd: '0.005', btcUsd: '64000.12', invoice: {} as never };
      const { header, body } = quotedChallenge(order, offered);
      expect(header.length).toBeLessThanOrEqual(3 * 1024);
      expect(decode(header).extensions).toEqual(JSON.parse(JSON.stringify(bazaarExtension(endpoint))));
      expect(decode(header).resource).toEqual({
        url,
        mimeType: 'application/json',
        description: `${endpoint.summary} Pay the invoice.`,
      });
      expect(JSON.parse(body)).toMatchObject(decode(header));
    }
    expect(sold).toEqual(expect.arrayContaining(paid.filter(({ path }) => path !== '/selftest/fail')));
  });

  test('is plain base64 of one JSON object, whatever the length of URL and reason', () => {
    const challenge = challengeOf(createOffer(paid[0]!, TERMS));
    const path = pathOn(paid[0]!, 'paid');
    for (let length = 0; length < 9; length += 1) {
      for (const error of [undefined, 'payment_already_used', 'naïve’']) {
        const target = `${path}?q=${'x'.repeat(length)}`;
        const header = challenge(target, error);
        expect(header).toMatch(/^[A-Za-z0-9+/]+={0,2}$/);
        const { x402Version, error: said, resource, accepts } = decode(header);
        expect([x402Version, said]).toEqual([2, error ?? 'Payment required']);
        expect(resource).toMatchObject({ url: TERMS.publicOrigin + target, description: paid[0]!.summary });
        expect(accepts).toHaveLength(2);
      }
    }
  });
});

describe('the extension of a route', () => {
  test.each([...new Set([...paid, ...sold])].map((endpoint) => [listedPath(endpoint), endpoint] as const))(
    '%s says how it is called, and names its parameters as our own market reads them',
    (path, endpoint) => {
      const whole = decode(challengeOf(createOffer(endpoint, TERMS))(path));
      const { params, method, description } = describeChallenge(
        { version: 2, accepts: [], whole },
        new URL(path, TERMS.publicOrigin),
        'GET',
      );
      expect([method, description]).toEqual(['GET', endpoint.summary]);
      const example = (name: string, type: unknown) => {
        const given = endpoint.example.params[name];
        return given === undefined ? null : type === 'integer' ? Number(given) : given;
      };
      expect(params.map(({ name, required, type, example: shown }) => ({ name, required, type, shown }))).toEqual(
        describeParams(endpoint).map(({ name, required, schema: { type } }) => ({
          name,
          required,
          type,
          shown: example(name, type),
        })),
      );
    },
  );

  test('is made once', () => {
    const endpoint = { params: z.object({}), example: { params: {}, result: {} } };
    expect(bazaarExtension(endpoint)).toBe(bazaarExtension(endpoint));
  });
});

test('the extension has the official form: how the route is called, an example of its parameters, and their schema', () => {
  const endpoint = {
    params: z.object({
      q: z.string().meta({ description: 'What to look for.' }),
      zip: z.string().optional(),
      way: z.enum(['up', 'down']).default('up'),
      limit: z.coerce.number().int().min(1).max(10).default(5),
    }),
    example: { params: { q: '0042', limit: '3' }, result: { text: 't' } },
  };
  // As it is sent: a member that is undefined is not.
  expect(JSON.parse(JSON.stringify(bazaarExtension(endpoint).bazaar))).toEqual({
    info: {
      input: { type: 'http', method: 'GET', queryParams: { q: '0042', limit: 3 } },
      output: { type: 'json' },
    },
    schema: {
      type: 'object',
      properties: {
        input: {
          type: 'object',
          properties: {
            queryParams: {
              type: 'object',
              properties: {
                q: { type: 'string' },
                zip: { type: 'string' },
                way: { type: 'string', enum: ['up', 'down'] },
                limit: { type: 'integer', minimum: 1, maximum: 10 },
              },
              required: ['q'],
              additionalProperties: false,
            },
          },
        },
        output: { type: 'object', properties: { example: { type: 'object' } } },
      },
      required: ['input'],
    },
  });
});
