import { describe, expect, test } from 'vitest';
import { decodePayment, identifierIn } from '../../../../../src/payment/protocols/x402/http.ts';
import { headerOf } from '../../../../../src/payment/protocols/x402/tool.ts';

const payment = { x402Version: 2, accepted: { network: 'eip155:1' }, payload: { signature: '0x' } };
const judged = { protocol: 'x402', accepted: payment.accepted, payload: payment.payload };

describe('a payment in _meta', () => {
  test('is judged as the header that says the same', () => {
    const { identifier, ...read } = decodePayment(headerOf(payment));
    expect([read, identifier()]).toEqual([judged, null]);
  });

  test('keeps its identifier and leaves what a client echoes, which would make it too long', () => {
    const identifier = { info: { id: 'a-buyer-knows-this' } };
    const echoed = { bazaar: { info: 'x'.repeat(20_000) }, 'payment-identifier': identifier };
    const header = headerOf({ ...payment, resource: { url: 'x'.repeat(20_000) }, extensions: echoed });
    const { identifier: named, ...read } = decodePayment(header);
    expect([read, named()]).toEqual([judged, identifierIn({ 'payment-identifier': identifier })]);
  });

  const deep = JSON.parse(`${'['.repeat(30_000)}${']'.repeat(30_000)}`);
  test.each([
    ['null', null],
    ['a string', 'e30='],
    ['an array', [payment]],
    ['an empty object', {}],
    ['version 1', { ...payment, x402Version: 1 }],
    ['bottomless', { ...payment, payload: { deep } }],
    ['huge', { ...payment, payload: { huge: 'x'.repeat(20_000) } }],
    ['one whose members are its prototype’s', Object.create(payment)],
  ])('that is %s is refused like a header that cannot be read', (_name, given) => {
    expect(() => decodePayment(headerOf(given))).toThrow(/^invalid_(payload|x402_version)$/);
  });
});
