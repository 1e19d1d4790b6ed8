import { encodePaymentRequiredHeader } from '@x402/core/http';
import type { PaymentRequired, PaymentRequirements } from '@x402/core/types';
import { describe, expect, test } from 'vitest';
import { listedPriceOf } from '../../../scripts/lib/pay/listed-price.ts';
import { readOffer } from '../../../scripts/lib/pay/offer.ts';

const requirement: PaymentRequirements = {
  scheme: 'exact',
  network: 'eip155:5042',
  asset: '0x3600000000000000000000000000000000000000',
  amount: '2000',
  payTo: '0x00000000000000000000000000000000000000aa',
  maxTimeoutSeconds: 604_900,
  extra: { name: 'USDC', version: '2', assetTransferMethod: 'eip3009' },
};

function header(...accepts: unknown[]): string {
  const challenge = { x402Version: 2, resource: { url: 'http://seller.test/x' }, accepts };
  return encodePaymentRequiredHeader(challenge as PaymentRequired);
}

describe('the offer that is paid', () => {
  test('is the plain USDC transfer, at any position, and the challenge is reduced to it', () => {
    const gateway = {
      ...requirement,
      amount: '1',
      extra: { name: 'GatewayWalletBatched', version: '1', verifyingContract: requirement.payTo },
    };
    const offer = readOffer(header(gateway, { ...requirement, scheme: 'upto' }, requirement));
    expect(offer.amountUnits).toBe(2000n);
    expect(offer.challenge.accepts).toEqual([requirement]);
  });

  test('may be USDC on a chain that the stock client knows', () => {
    const base = { network: 'eip155:8453', asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913' };
    const offer = readOffer(header({ ...requirement, ...base, extra: { name: 'USD Coin', version: '2' } }));
    expect(offer.requirement.network).toBe('eip155:8453');
  });

  test.each([
    ['another asset, whose units are worth something else', { asset: '0x00000000000000000000000000000000000000bb' }],
    ['an unknown chain', { network: 'eip155:99' as const }],
    ['another family of chains', { network: 'solana:mainnet' as const }],
    ['a negative amount', { amount: '-1' }],
    ['a decimal amount', { amount: '0.002' }],
    ['no amount', { amount: undefined }],
    ['a transfer by standing allowance', { extra: { ...requirement.extra, assetTransferMethod: 'permit2' } }],
    ['no signing domain', { extra: {} }],
  ])('is not %s', (_case, changes) => {
    expect(() => readOffer(header({ ...requirement, ...changes }))).toThrow('nothing on offer');
  });

  test.each(['', 'not base64!', Buffer.from('null').toString('base64'), Buffer.from('[]').toString('base64')])(
    'cannot come from the header "%s"',
    (value) => expect(() => readOffer(value)).toThrow('no x402 version 2 challenge'),
  );
});

describe('the listed price', () => {
  const listing = (amount: unknown) => ({ paths: { '/a': { get: { 'x-payment-info': { price: { amount } } } } } });

  test('is read exactly, for this path only', () => {
    expect(listedPriceOf(listing('0.002'), '/a')).toBe(2000n);
    expect(listedPriceOf(listing('0.002'), '/b')).toBeNull();
    expect(listedPriceOf(listing('0.002'), '__proto__')).toBeNull();
  });

  test.each([listing(0.002), listing('free'), { paths: { '/a': { post: {} } } }, { paths: [] }, null, 'x'])(
    'is unknown when the listing has no usable price (%#)',
    (openapi) => expect(listedPriceOf(openapi, '/a')).toBeNull(),
  );
});
