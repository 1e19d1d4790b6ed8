import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { checkLightningOffer, checkPaidPreimage } from '../../../cli/ways/lightning.ts';
import { invoiceOf } from '../../../scripts/lib/lightning/encode-invoice.ts';
import { MAINNET, TESTNET } from '../../../src/payment/lightning/terms.ts';
import { SCHEME_KEY, SCHEME_PAYEE, SCHEME_REQUEST_HASH } from '../../support/lightning/invoice.ts';

const NOW = 1_700_000_000;
const URL_A = 'https://api.example.com/article/A';
const REQUEST_HASH = Buffer.from(SCHEME_REQUEST_HASH, 'hex');
const preimage = '07'.repeat(32);
const paymentHash = createHash('sha256').update(preimage, 'hex').digest();
const OTHER_PAYEE = '02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5';

type Invoice = Parameters<typeof invoiceOf>[0];
type Json = Record<string, unknown>;

/** The scheme's own example as an offer, with some parts of the invoice, the entry and its `extra` changed. */
function offer({
  invoice = {},
  entry = {},
  extra = {},
}: {
  invoice?: Partial<Invoice>;
  entry?: Json;
  extra?: Json;
} = {}) {
  const text = invoiceOf({
    privateKey: SCHEME_KEY,
    amountMsat: 25_000n,
    createdAt: NOW,
    paymentHash,
    descriptionHash: REQUEST_HASH,
    ...invoice,
  });
  return {
    scheme: 'exact',
    network: MAINNET.id,
    amount: '25000',
    asset: 'BTC',
    payTo: SCHEME_PAYEE,
    maxTimeoutSeconds: 300,
    extra: {
      paymentFlow: 'upfront',
      invoice: text,
      requestHash: SCHEME_REQUEST_HASH,
      requestBindingProfile: 'http:1',
      requestBindingParams: { headers: [] },
      ...extra,
    },
    ...entry,
  };
}

const purchase = { method: 'GET', url: URL_A, now: NOW, ceilingMsat: 25_000n };
const reasonFor = (entry: unknown, changes: Partial<typeof purchase & { resourceUrl: string }> = {}) => {
  const { url } = { ...purchase, ...changes };
  const verdict = checkLightningOffer(entry, { ...purchase, resourceUrl: url, ...changes });
  return verdict.ok ? null : verdict.reason;
};

describe('an offer may be paid', () => {
  test('when its invoice equals its terms, for exactly our request, at the ceiling', () => {
    const verdict = checkLightningOffer(offer(), { ...purchase, resourceUrl: URL_A });
    expect(verdict).toMatchObject({
      ok: true,
      network: MAINNET.id,
      invoice: { amountMsat: 25_000n, expirySeconds: 300 },
    });
  });

  test.each([
    ['on the test network', { entry: { network: TESTNET.id }, invoice: { currency: 'tb' } }, {}],
    ['that names its method', { extra: { assetTransferMethod: 'bolt11' } }, {}],
    ['with more declared', { extra: { memo: { anything: 1 } } }, {}],
    ['with the payee named in the invoice', { invoice: { payeeField: true } }, {}],
    ['until its last second', {}, { now: NOW + 299 }],
    ['by a clock that is behind', {}, { now: NOW - 60 }],
  ])('%s', (_name, changes, at) => {
    expect(reasonFor(offer(changes), at)).toBeNull();
  });
});

describe('nothing is paid for', () => {
  test.each<[reason: string, name: string, entry: unknown, at?: Parameters<typeof reasonFor>[1]]>([
    ['unsupported_scheme', 'no object', null],
    ['unsupported_scheme', 'another scheme', offer({ entry: { scheme: 'upto' } })],
    ['unsupported_network', 'an unknown network', offer({ entry: { network: 'lnbtc:constructor' } })],
    ['invalid_exact_lnbtc_asset', 'another asset', offer({ entry: { asset: 'LTC' } })],
    ['invalid_exact_lnbtc_amount', 'an amount that is a number', offer({ entry: { amount: 25_000 } })],
    ['invalid_exact_lnbtc_max_timeout', 'no timeout', offer({ entry: { maxTimeoutSeconds: 0 } })],
    ['invalid_exact_lnbtc_pay_to_malformed', 'a recipient that is no key', offer({ entry: { payTo: '02' } })],
    [
      'invalid_exact_lnbtc_asset_transfer_method',
      'another method',
      offer({ extra: { assetTransferMethod: 'bolt12' } }),
    ],
    ['invalid_exact_lnbtc_payment_flow', 'no flow', offer({ extra: { paymentFlow: undefined } })],
    ['invalid_exact_lnbtc_payment_flow', 'no extra', offer({ entry: { extra: null } })],
    ['invalid_exact_lnbtc_request_binding', 'no request hash', offer({ extra: { requestHash: undefined } })],
    ['invalid_exact_lnbtc_request_binding', 'a request that cannot be bound', offer(), { url: `${URL_A}#x` }],
    ['invalid_exact_lnbtc_request_mismatch', 'another URL', offer(), { url: 'https://api.example.com/article/B' }],
    ['invalid_exact_lnbtc_request_mismatch', 'another method of HTTP', offer(), { method: 'POST' }],
    [
      'invalid_exact_lnbtc_request_mismatch',
      'our URL, said to be another',
      offer(),
      { resourceUrl: 'https://api.example.com/article/A/wrong' },
    ],
    ['invalid_exact_lnbtc_request_mismatch', 'our URL in another spelling', offer(), { resourceUrl: `${URL_A}?` }],
    [
      'invalid_exact_lnbtc_request_mismatch',
      'headers that we do not bind',
      offer({ extra: { requestBindingParams: { headers: ['accept'] } } }),
    ],
    ['invalid_exact_lnbtc_invoice_missing', 'no invoice', offer({ extra: { invoice: '' } })],
    ['invalid_exact_lnbtc_invoice_decode_failed', 'an invoice that is none', offer({ extra: { invoice: 'lnbc1' } })],
    ['invalid_exact_lnbtc_invoice_description', 'words in the invoice', offer({ invoice: { description: 'x' } })],
    ['invalid_exact_lnbtc_invoice_description', 'no bound request', offer({ invoice: { descriptionHash: null } })],
    [
      'invalid_exact_lnbtc_invoice_request_mismatch',
      'an invoice for another request',
      offer({ invoice: { descriptionHash: paymentHash } }),
    ],
    ['invalid_exact_lnbtc_invoice_payee_mismatch', 'a third party’s invoice', offer({ entry: { payTo: OTHER_PAYEE } })],
    [
      'invalid_exact_lnbtc_invoice_currency_mismatch',
      'the other network’s coins',
      offer({ invoice: { currency: 'tb' } }),
    ],
    ['invalid_exact_lnbtc_invoice_amount_mismatch', 'a larger invoice', offer({ invoice: { amountMsat: 25_001n } })],
    ['invalid_exact_lnbtc_invoice_expiry_mismatch', 'a shorter invoice', offer({ invoice: { expirySeconds: 299 } })],
    ['invalid_exact_lnbtc_invoice_created_in_future', 'an invoice of tomorrow', offer(), { now: NOW - 61 }],
    ['invalid_exact_lnbtc_invoice_expired', 'an expired invoice', offer(), { now: NOW + 300 }],
    ['above_the_ceiling', 'a price above the ceiling', offer(), { ceilingMsat: 24_999n }],
  ])('%s: %s', (reason, _name, entry, at) => {
    expect(reasonFor(entry, at)).toBe(reason);
  });

  test('an offer is refused when its hash is not the hash of our request', () => {
    // A seller that hashes another request, and names that hash everywhere, would sell another answer.
    const elsewhere = offer({
      extra: { requestHash: paymentHash.toString('hex') },
      invoice: { descriptionHash: paymentHash },
    });
    expect(reasonFor(elsewhere)).toBe('invalid_exact_lnbtc_request_mismatch');
  });
});

describe('a payer’s preimage', () => {
  test('is accepted when its hash is the payment hash', () => {
    expect(checkPaidPreimage(preimage, paymentHash)).toBeNull();
  });

  test.each([
    ['invalid_exact_lnbtc_payer_preimage_required', undefined],
    ['invalid_exact_lnbtc_payer_preimage_required', null],
    ['invalid_exact_lnbtc_payer_preimage_required', ''],
    ['invalid_exact_lnbtc_payer_preimage_malformed', 7],
    ['invalid_exact_lnbtc_payer_preimage_malformed', preimage.slice(2)],
    ['invalid_exact_lnbtc_payer_preimage_malformed', 'AB'.repeat(32)],
    ['invalid_exact_lnbtc_payer_preimage_hash_mismatch', '08'.repeat(32)],
  ])('%s: %o', (reason, reported) => {
    expect(checkPaidPreimage(reported, paymentHash)).toBe(reason);
  });
});
