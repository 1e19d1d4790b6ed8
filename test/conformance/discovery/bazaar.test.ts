import { x402Client } from '@x402/core/client';
import type { PaymentPayload, PaymentRequired } from '@x402/core/types';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import {
  type DiscoveryExtension,
  extractDiscoveryInfo,
  validateAndExtract,
  validateDiscoveryExtensionSpec,
} from '@x402/extensions/bazaar';
import { appendPaymentIdentifierToExtensions, validatePaymentIdentifier } from '@x402/extensions/payment-identifier';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { describe, expect, test } from 'vitest';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import { entriesOn, listedPath, pathOn } from '../../../src/catalogue/paths.ts';
import { bazaarExtension } from '../../../src/payment/protocols/x402/bazaar.ts';
import { decodePayment, encodeHeader } from '../../../src/payment/protocols/x402/http.ts';
import { createOffer } from '../../../src/wiring/surfaces.ts';
import { dearest } from '../../support/prices.ts';
import { challengeOf } from '../../support/service/challenge-of.ts';
import { TERMS } from '../../support/service/terms.ts';

const paid = entriesOn(catalogue, 'paid');
const priced = [...new Set([...paid, ...entriesOn(catalogue, 'lightning')])];

interface Wire {
  readonly info: { input: { queryParams: Record<string, unknown> } };
}
const withParam = ({ info: { input } }: Wire, more: object) => ({
  ...input,
  queryParams: { ...input.queryParams, ...more },
});
/** The extension, decoded from a header. */
const wireOf = (endpoint: (typeof priced)[number]) =>
  JSON.parse(JSON.stringify(bazaarExtension(endpoint))).bazaar as Wire & DiscoveryExtension & Record<string, unknown>;

describe('the official library', () => {
  test.each(priced.map((endpoint) => [listedPath(endpoint), endpoint] as const))(
    'accepts the extension of %s as valid, by its rules and by its own schema',
    (_path, endpoint) => {
      const wire = wireOf(endpoint);
      expect(validateDiscoveryExtensionSpec(wire)).toEqual({ valid: true });
      expect(validateAndExtract(wire)).toEqual({ valid: true, info: wire.info });
      expect(wire.info.input.queryParams).toEqual(
        Object.fromEntries(
          Object.entries(endpoint.example.params).map(([name, value]) => [
            name,
            endpoint.params.shape[name]?.meta()?.type === 'integer' ? Number(value) : value,
          ]),
        ),
      );
    },
  );

  test.each([
    ['an input without its members', (wire: Wire) => ({ ...wire.info, input: 'GET' })],
    ['a parameter that there is not', (wire: Wire) => ({ ...wire.info, input: withParam(wire, { colour: 'red' }) })],
    ['a number where a text belongs', (wire: Wire) => ({ ...wire.info, input: withParam(wire, { title: 5 }) })],
  ])('refuses %s', (_what, change) => {
    const wire = wireOf(priced.find(({ path }) => path === '/wiki/article') ?? paid[0]!);
    const changed = { ...wire, info: change(wire) } as unknown as DiscoveryExtension;
    expect(validateAndExtract(changed).valid).toBe(false);
  });
});

describe('a stock client', () => {
  const usdc = { network: TERMS.network, asset: TERMS.usdc, maxAmountPerPayment: String(dearest().units) };
  const client = new x402Client()
    .register('eip155:5042', new ExactEvmScheme(privateKeyToAccount(generatePrivateKey())))
    .setSpendControls({ allowedAssets: [usdc] });

  test('adds its payment identifier to the extension that the challenge declares, and it is valid by the official rules', async () => {
    const header = challengeOf(createOffer(paid[0]!, TERMS))(pathOn(paid[0]!, 'paid'));
    const { extensions = {} } = JSON.parse(Buffer.from(header, 'base64').toString('utf8')) as PaymentRequired;
    const { 'payment-identifier': declared } = appendPaymentIdentifierToExtensions(structuredClone(extensions));
    expect((declared as { info: { id?: string } }).info.id).toMatch(/^pay_/);
    expect(validatePaymentIdentifier(declared)).toEqual({ valid: true });
    const short = { ...(declared as object), info: { required: false, id: 'short' } };
    expect(validatePaymentIdentifier(short).valid).toBe(false);
  });

  test('repeats the extension in a payment that we accept and that a facilitator can list', async () => {
    const sizes: number[] = [];
    for (const endpoint of paid) {
      const path = pathOn(endpoint, 'paid');
      const query = new URLSearchParams(endpoint.example.params).toString();
      const header = challengeOf(createOffer(endpoint, TERMS))(query ? `${path}?${query}` : path);
      const demand = JSON.parse(Buffer.from(header, 'base64').toString('utf8')) as PaymentRequired;
      const payment = (await client.createPaymentPayload(demand)) as PaymentPayload;
      expect(payment.extensions?.bazaar, path).toEqual(wireOf(endpoint));
      const presented = encodeHeader(payment);
      expect(JSON.parse(Buffer.from(presented, 'base64').toString('utf8')).extensions).toHaveProperty('bazaar');
      expect(() => decodePayment(presented).identifier()).not.toThrow();
      sizes.push(presented.length);
      expect(extractDiscoveryInfo(payment, payment.accepted)).toMatchObject({
        resourceUrl: TERMS.publicOrigin + path,
        method: 'GET',
        description: endpoint.summary,
        discoveryInfo: wireOf(endpoint).info,
      });
    }
    expect(sizes).toHaveLength(paid.length);
    // Half of nginx's limit on a request's header lines.
    expect(Math.max(...sizes)).toBeLessThanOrEqual(4 * 1024 - 'PAYMENT-SIGNATURE: \r\n'.length);
  });
});
