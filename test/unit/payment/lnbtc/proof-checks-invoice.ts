import { TESTNET } from '../../../../src/payment/lightning/terms.ts';
import {
  type Check,
  faultsAt,
  GONE,
  INVOICE,
  NOW,
  OTHER_HASH,
  PAY_TO,
  PAYMENT_HASH,
  PREIMAGE,
  REQUEST_HASH,
  THIRD_PAY_TO,
} from './proof-cases.ts';

/** The checks of steps 4 to 7, in the scheme's order. */
export const INVOICE_CHECKS: readonly Check[] = [
  {
    step: 4,
    reason: 'invalid_exact_lnbtc_invoice_missing',
    faults: faultsAt('requirement.extra.invoice', [GONE, undefined, null, '']),
  },
  {
    step: 4,
    reason: 'invalid_exact_lnbtc_invoice_missing',
    faults: faultsAt('accepted.extra.invoice', [GONE, undefined, null, '']),
  },

  {
    step: 5,
    reason: 'invalid_exact_lnbtc_invoice_decode_failed',
    faults: faultsAt('accepted.extra.invoice', [
      5,
      0,
      true,
      false,
      {},
      [INVOICE],
      ' ',
      'lnbc',
      `lightning:${INVOICE}`,
      ` ${INVOICE}`,
      INVOICE.slice(0, -1),
      `${INVOICE}q`,
      `LNBC${INVOICE.slice(4)}`,
      INVOICE.replace('lnbc', 'lnxx'),
    ]),
  },
  {
    step: 5,
    reason: 'invalid_exact_lnbtc_invoice_description',
    faults: [
      { 'invoice.hashes': [] },
      { 'invoice.hashes': [], 'invoice.description': 'a page' },
      { 'invoice.description': 'a page' },
      { 'invoice.description': '' },
      { 'invoice.hashes': [REQUEST_HASH, REQUEST_HASH] },
      { 'invoice.hashes': [REQUEST_HASH, OTHER_HASH] },
    ],
  },
  {
    step: 5,
    reason: 'invalid_exact_lnbtc_invoice_request_mismatch',
    faults: [{ 'invoice.hashes': [OTHER_HASH] }, { 'both.extra.requestHash': PAYMENT_HASH }],
  },
  {
    step: 5,
    reason: 'invalid_exact_lnbtc_invoice_payee_mismatch',
    faults: [{ 'invoice.key': 2 }, { 'both.payTo': THIRD_PAY_TO }, { 'both.payTo': PAY_TO.replace(/^02/, '03') }],
  },
  {
    step: 5,
    reason: 'invalid_exact_lnbtc_invoice_currency_mismatch',
    faults: [
      ...faultsAt('invoice.currency', ['tb', 'bcrt', 'tbs']),
      { 'both.network': TESTNET.id },
      ...['bcrt', 'tbs'].map((currency) => ({ 'both.network': TESTNET.id, 'invoice.currency': currency })),
    ],
  },
  {
    step: 5,
    reason: 'invalid_exact_lnbtc_invoice_amount_mismatch',
    faults: [
      ...faultsAt('invoice.amountMsat', [24_999n, 25_001n, 25_000_000n]),
      ...faultsAt('both.amount', ['25', '9'.repeat(10_000)]),
    ],
  },
  {
    step: 5,
    reason: 'invalid_exact_lnbtc_invoice_expiry_mismatch',
    faults: [
      ...faultsAt('invoice.expirySeconds', [299, 301, 3600]),
      ...faultsAt('both.maxTimeoutSeconds', [299, Number.MAX_SAFE_INTEGER]),
    ],
  },
  {
    step: 5,
    reason: 'invalid_exact_lnbtc_invoice_created_in_future',
    faults: faultsAt('invoice.createdAt', [NOW + 61, 2 ** 35 - 1]),
  },

  {
    step: 6,
    reason: 'invalid_exact_lnbtc_preimage_missing',
    faults: [
      ...faultsAt('payment.payload', [GONE, null, {}, [], 'text', PREIMAGE]),
      ...faultsAt('payment.payload.preimage', [GONE, undefined, null]),
    ],
  },
  {
    step: 6,
    reason: 'invalid_exact_lnbtc_preimage_malformed',
    faults: faultsAt('payment.payload.preimage', [
      0,
      false,
      {},
      [PREIMAGE],
      `0x${PREIMAGE.slice(2)}`,
      `${PREIMAGE.slice(1)}A`,
      `${PREIMAGE}\n`,
      ` ${PREIMAGE}`,
      'g',
      'é',
    ]),
  },
  {
    step: 6,
    reason: 'invalid_exact_lnbtc_preimage_length',
    faults: faultsAt('payment.payload.preimage', ['', '0', PREIMAGE.slice(2), PREIMAGE.slice(1), `${PREIMAGE}00`]),
  },
  {
    step: 6,
    reason: 'invalid_exact_lnbtc_preimage_hash_mismatch',
    faults: faultsAt('payment.payload.preimage', ['00'.repeat(32), PAYMENT_HASH, `${PREIMAGE.slice(2)}00`]),
  },

  { step: 7, reason: 'invalid_exact_lnbtc_invoice_expired', faults: faultsAt('invoice.createdAt', [NOW - 361, 0]) },
];
