import { encodePaymentRequiredHeader } from '@x402/core/http';
import type { PaymentRequired, PaymentRequirements } from '@x402/core/types';
import { describe, expect, test } from 'vitest';
import { listedPriceOf as priceOf } from '../../../cli/listing.ts';
import { plainTransfers } from '../../../cli/ways/exact.ts';

const requirement: PaymentRequirements = {
  scheme: 'exact',
  network: 'eip155:5042',
  asset: '0x3600000000000000000000000000000000000000',
  amount: '2000',
  payTo: '0x00000000000000000000000000000000000000aa',
  maxTimeoutSeconds: 604_900,
  extra: { name: 'USDC', version: '2', assetTransferMethod: 'eip3009' },
};

const listedPriceOf = (openapi: unknown, path: string, asset: string | null = null) =>
  priceOf(openapi, { path, method: 'GET', asset });

function header(...accepts: unknown[]): string {
  const challenge = { x402Version: 2, resource: { url: 'http://seller.test/x' }, accepts };
  return encodePaymentRequiredHeader(challenge as PaymentRequired);
}

describe('the offer that is paid', () => {
  test('is the plain USDC transfer, at any position', () => {
    const gateway = {
      ...requirement,
      amount: '1',
      extra: { name: 'GatewayWalletBatched', version: '1', verifyingContract: requirement.payTo },
    };
    const found = plainTransfers(header(gateway, { ...requirement, scheme: 'upto' }, requirement));
    expect(found.map((entry) => entry.requirement)).toEqual([requirement]);
  });

  test('may be USDC on a chain that the stock client knows', () => {
    const base = { network: 'eip155:8453', asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913' };
    const [offer] = plainTransfers(header({ ...requirement, ...base, extra: { name: 'USD Coin', version: '2' } }));
    expect(offer?.requirement.network).toBe('eip155:8453');
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
    expect(plainTransfers(header({ ...requirement, ...changes }))).toEqual([]);
  });

  test.each(['', 'not base64!', Buffer.from('null').toString('base64'), Buffer.from('[]').toString('base64')])(
    'cannot come from the header "%s"',
    (value) => expect(() => plainTransfers(value)).toThrow('no x402 version 2 challenge'),
  );
});

describe('the listed price', () => {
  const info = (payment: unknown) => ({ paths: { '/a': { get: { 'x-payment-info': payment } } } });
  const listing = (amount: unknown) => info({ price: { amount } });
  const USDC = '0x3600000000000000000000000000000000000000';

  test('is read exactly, for this path only', () => {
    expect(listedPriceOf(listing('0.002'), '/a')).toEqual({ units: 2000n, msat: null });
    expect(listedPriceOf(listing('0.002'), '/b')).toBeNull();
    expect(listedPriceOf(listing('0.002'), '__proto__')).toBeNull();
  });

  test('is rounded down, so that an amount above it is refused', () => {
    expect(listedPriceOf(listing('0.0020009'), '/a')?.units).toBe(2000n);
    expect(listedPriceOf(listing('0.00000009'), '/a')?.units).toBe(0n);
  });

  test('is read from the offers of MPP, in base units of the asset that is asked for, and in sats', () => {
    const evm = { intent: 'charge', method: 'evm', amount: '1500', currency: USDC.toUpperCase().replace('X', 'x') };
    const sats = { intent: 'charge', method: 'lightning', amount: '12', currency: 'sat' };
    expect(listedPriceOf(info({ offers: [evm, sats] }), '/a', USDC)).toEqual({ units: 1500n, msat: 12_000n });
    expect(listedPriceOf(info({ offers: [evm] }), '/a')).toBeNull();
    expect(listedPriceOf(info(evm), '/a', USDC)).toEqual({ units: 1500n, msat: null });
    expect(listedPriceOf(info({ offers: [{ ...sats, amount: null }] }), '/a')).toBeNull();
    expect(listedPriceOf(info({ offers: [{ ...sats, intent: 'session' }] }), '/a')).toBeNull();
  });

  test('is looked for soon, whatever a template has', () => {
    const hostile = `${'/'.repeat(300_000)}x`;
    const { paths } = listing('0.002') as { paths: object };
    expect(listedPriceOf({ paths: { [hostile]: {}, ...paths } }, '/b')).toBeNull();
    expect(listedPriceOf({ paths: { [hostile]: {}, ...paths } }, '/a///')?.units).toBe(2000n);
  });

  test('is the lower one when a listing has two', () => {
    const evm = { intent: 'charge', method: 'evm', amount: '1500', currency: USDC };
    expect(listedPriceOf(info({ price: { amount: '0.002' }, offers: [evm] }), '/a', USDC)?.units).toBe(1500n);
    expect(listedPriceOf(info({ price: { amount: '0.001' }, offers: [evm] }), '/a', USDC)?.units).toBe(1000n);
  });

  test('is the one of a path with placeholders, unless the path itself is listed', () => {
    const priced = (amount: string) => ({ get: { 'x-payment-info': { price: { amount } } } });
    const paths = { '/t/{id}': priced('0.003'), '/t/best': priced('0.001') };
    expect(listedPriceOf({ paths }, '/t/7')?.units).toBe(3000n);
    expect(listedPriceOf({ paths }, '/t/best')?.units).toBe(1000n);
    expect(listedPriceOf({ paths }, '/t/7/8')).toBeNull();
  });

  test('is found where a path refers to an item among the components', () => {
    const priced = { get: { 'x-payment-info': { price: { amount: '0.003' } } } };
    const paths = { '/a': { $ref: '#/components/pathItems/A' }, '/b': { $ref: 'https://b.example/openapi.json' } };
    const openapi = { paths, components: { pathItems: { A: priced } } };
    expect([listedPriceOf(openapi, '/a')?.units, listedPriceOf(openapi, '/b')]).toEqual([3000n, null]);
  });

  test.each([listing(0.002), listing('free'), { paths: { '/a': { post: {} } } }, { paths: [] }, null, 'x'])(
    'is unknown when the listing has no usable price (%#)',
    (openapi) => expect(listedPriceOf(openapi, '/a')).toBeNull(),
  );
});
