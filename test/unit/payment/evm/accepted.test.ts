import { expect, test } from 'vitest';
import { PaymentRefused } from '../../../../src/payment/refusal.ts';
import { checkAccepted } from '../../../../src/payment/usdc/authorization.ts';
import { exactRequirement } from '../../../../src/payment/usdc/exact.ts';
import { TERMS } from '../../../support/service/terms.ts';

const PLAIN = exactRequirement(1000n, TERMS);
const OTHER = 'No matching payment requirements';
const upper = (address: string) => `0x${address.slice(2).toUpperCase()}`;

/** Why a payment with these terms is refused; null where it is not. */
function reasonFor(accepted: object): string | null {
  try {
    checkAccepted(accepted as never, PLAIN);
    return null;
  } catch (error) {
    expect(error).toBeInstanceOf(PaymentRefused);
    return (error as PaymentRefused).reason;
  }
}

test('a payment accepts the offer’s requirement; addresses may be written in either case, and extra may hold more', () => {
  expect(reasonFor(PLAIN)).toBeNull();
  expect(reasonFor({ ...PLAIN, asset: upper(PLAIN.asset), payTo: upper(PLAIN.payTo) })).toBeNull();
  expect(reasonFor({ ...PLAIN, extra: { ...PLAIN.extra, note: 'mine' } })).toBeNull();
});

test('a payment on another network is refused by name', () => {
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
])('a payment with another %s is refused', (_, change) => {
  expect(reasonFor({ ...PLAIN, ...change })).toBe(OTHER);
});
