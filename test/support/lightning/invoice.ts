import { bech32 } from '@scure/base';
import {
  bytesField,
  encodeInvoice,
  type InvoiceParts,
  integerField,
} from '../../../scripts/lib/lightning/encode-invoice.ts';

/** The key of BOLT11's own examples. */
export const BOLT11_KEY = Buffer.from('e126f68f7eafcc8b74f54d269fe206be715000f94dac067d1c04a8ca3b2db734', 'hex');
export const BOLT11_PAYEE = '03e7156ae33b0a208d0744199163177e909e80176e55d97a2f221ede0f934dd9ad';

/** The scheme's test vector: private key 1, and the invoice for `GET https://api.example.com/article/A`. */
export const SCHEME_KEY = Buffer.from('01'.padStart(64, '0'), 'hex');
export const SCHEME_PAYEE = '0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798';
export const SCHEME_PAYMENT_HASH = 'a923c2c0e4fe77061ff1cb882171f6fdf926719bb7f5ffe2e05458438c52825e';
export const SCHEME_REQUEST_HASH = '0d6623f775e025501fa7f0a30b54da25aad62b6ccfe35c85da38016711e6c018';
export const SCHEME_INVOICE =
  'lnbc250n1pj48ugqpp54y3u9s8ylemsv8l3ewyzzu0klhujvuvmkl6llchq23vy8rzjsf0qsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygshp5p4nz8am4uqj4q8a87z3sk4x6yk4dv2mvel34epw68qqkwy0xcqvqxqzfvcqpjr4rx6ls6j5rpwknuea64evlk7yfx56wmqcer5eerekdsn9tlv6v4ex9mlz5dtm9qapl3svwlqcf7837dmjkru9z9w4h2rvm0md52w2sqxrwu5f';

/** The parts of the scheme's invoice. Tests change one at a time. */
export const SCHEME_PARTS = {
  currency: 'bc',
  amountMsat: 25_000n,
  createdAt: 1_700_000_000,
  fields: [
    bytesField('p', Buffer.from(SCHEME_PAYMENT_HASH, 'hex')),
    bytesField('s', new Uint8Array(32).fill(0x11)),
    bytesField('h', Buffer.from(SCHEME_REQUEST_HASH, 'hex')),
    integerField('x', 300),
    integerField('c', 18),
  ],
} satisfies InvoiceParts;

/** The scheme's invoice with changed parts, signed again by the scheme's key. */
export function changedInvoice(parts: Partial<InvoiceParts>): string {
  return encodeInvoice({ ...SCHEME_PARTS, ...parts }, SCHEME_KEY);
}

/** An invoice with changed words or prefix and a correct checksum. It is not signed again. */
export function reworded(invoice: string, change: (words: number[]) => readonly number[], prefix?: string): string {
  const decoded = bech32.decode(invoice as `${string}1${string}`, false);
  return bech32.encode(prefix ?? decoded.prefix, [...change(decoded.words)], false);
}
