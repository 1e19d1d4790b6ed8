import { bech32, bech32m } from '@scure/base';
import { describe, expect, test } from 'vitest';
import { invoiceOf } from '../../../../scripts/lib/lightning/encode-invoice.ts';
import { decodeInvoice } from '../../../../src/payment/lightning/bolt11.ts';
import {
  changedInvoice,
  reworded,
  SCHEME_INVOICE,
  SCHEME_KEY,
  SCHEME_PARTS,
  SCHEME_PAYEE,
  SCHEME_PAYMENT_HASH,
  SCHEME_REQUEST_HASH,
} from '../../../support/lightning/invoice.ts';

const bytes = (hex: string) => Uint8Array.from(Buffer.from(hex, 'hex'));
const decoded = {
  currency: 'bc',
  amountMsat: 25_000n,
  createdAt: 1_700_000_000,
  expirySeconds: 300,
  paymentHash: bytes(SCHEME_PAYMENT_HASH),
  descriptionHashes: [bytes(SCHEME_REQUEST_HASH)],
  hasDescription: false,
  payee: bytes(SCHEME_PAYEE),
};

describe("the scheme's invoice", () => {
  test('is read field by field, and as nothing more', () => {
    expect(decodeInvoice(SCHEME_INVOICE)).toStrictEqual(decoded);
  });

  test('is what the encoder writes for the same terms, byte for byte', () => {
    const { amountMsat, createdAt } = SCHEME_PARTS;
    const terms = { paymentHash: bytes(SCHEME_PAYMENT_HASH), descriptionHash: bytes(SCHEME_REQUEST_HASH) };
    expect(invoiceOf({ privateKey: SCHEME_KEY, amountMsat, createdAt, ...terms })).toBe(SCHEME_INVOICE);
    expect(changedInvoice({})).toBe(SCHEME_INVOICE);
  });

  test('reads the same in capitals, which QR codes hold', () => {
    expect(decodeInvoice(SCHEME_INVOICE.toUpperCase())).toStrictEqual(decoded);
  });

  test.each([
    ['with one capital', SCHEME_INVOICE.replace('pj48', 'pJ48')],
    ['with a capital prefix', SCHEME_INVOICE.replace('lnbc', 'LNBC')],
    ['with the prefix of a URI', `lightning:${SCHEME_INVOICE}`],
    ['with that prefix in capitals', `LIGHTNING:${SCHEME_INVOICE.toUpperCase()}`],
    ['after a space', ` ${SCHEME_INVOICE}`],
    ['before a line feed', `${SCHEME_INVOICE}\n`],
    ['twice', SCHEME_INVOICE + SCHEME_INVOICE],
    ['without its last character', SCHEME_INVOICE.slice(0, -1)],
    ['without a separator', SCHEME_INVOICE.replaceAll('1', '')],
    ['without a prefix', SCHEME_INVOICE.slice(SCHEME_INVOICE.lastIndexOf('1'))],
    ['with a Kelvin sign, which folds to k', SCHEME_INVOICE.replace('k', '\u212a')],
    ['in fullwidth letters', SCHEME_INVOICE.replace('lnbc', 'ｌｎｂｃ')],
    ['with a NUL', SCHEME_INVOICE.replace('1', '\u00001')],
    ['with half a surrogate pair', `${SCHEME_INVOICE}\ud800`],
  ])('%s is refused', (_, text) => {
    expect(decodeInvoice(text)).toBeNull();
  });

  test('is refused with the checksum of bech32m over the same words', () => {
    const { prefix, words } = bech32.decode(SCHEME_INVOICE as `${string}1${string}`, false);
    expect(decodeInvoice(bech32m.encode(prefix, words, false))).toBeNull();
    expect(decodeInvoice(bech32.encode(prefix, words, false))).toStrictEqual(decoded);
  });
});

describe('what is no string', () => {
  const throwing = new Proxy({}, { get: () => expect.unreachable(), getPrototypeOf: () => expect.unreachable() });
  test.each<[string, unknown]>([
    ['undefined', undefined],
    ['null', null],
    ['a number', 1],
    ['a bigint', 1n],
    ['a symbol', Symbol.iterator],
    ['a function', () => SCHEME_INVOICE],
    ['a boxed string', new String(SCHEME_INVOICE)],
    ['an array with the invoice', [SCHEME_INVOICE]],
    ['its bytes', Buffer.from(SCHEME_INVOICE)],
    ['an object that converts to it', { toString: () => SCHEME_INVOICE, valueOf: () => SCHEME_INVOICE }],
    ['an object of a string’s making', Object.create(String.prototype)],
    ['an object without a prototype', Object.create(null)],
    ['Object.prototype', Object.prototype],
    ['String.prototype', String.prototype],
    ['Array.prototype', Array.prototype],
    ['a proxy that must not be touched', throwing],
  ])('%s is no invoice', (_, value) => {
    expect(decodeInvoice(value)).toBeNull();
  });

  test.each(['', '1', 'ln1', 'constructor', '__proto__', 'toString', 'lnbc', 'null', '{}', '-1'])(
    'nor is the string %j',
    (text) => {
      expect(decodeInvoice(text)).toBeNull();
    },
  );
});

describe('length', () => {
  /** An invoice of exactly so many characters, by means of unknown fields. */
  function ofLength(characters: number): string {
    const spare = characters - SCHEME_INVOICE.length;
    const lengths = Array.from({ length: Math.ceil(spare / 1026) }, (_, i) => Math.min(1026, spare - i * 1026));
    const unknown = lengths.map((length) => ({ tag: 'z', words: new Array<number>(length - 3).fill(7) }));
    return changedInvoice({ fields: [...SCHEME_PARTS.fields, ...unknown] });
  }

  test('is bounded at 7089 characters', () => {
    const [longest, tooLong] = [ofLength(7089), ofLength(7090)];
    expect([longest.length, tooLong.length]).toEqual([7089, 7090]);
    expect(decodeInvoice(longest)).toStrictEqual(decoded);
    expect(decodeInvoice(tooLong)).toBeNull();
  });

  test('must leave room for a timestamp and a signature', () => {
    expect(decodeInvoice(reworded(SCHEME_INVOICE, (words) => words.slice(-110)))).toBeNull();
    expect(decodeInvoice(reworded(SCHEME_INVOICE, (words) => words.slice(-103)))).toBeNull();
    expect(decodeInvoice(reworded(SCHEME_INVOICE, () => []))).toBeNull();
  });
});
