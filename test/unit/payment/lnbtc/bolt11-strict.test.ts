import { describe, expect, test } from 'vitest';
import { bytesField, integerField, type TaggedField } from '../../../../scripts/lib/lightning/encode-invoice.ts';
import { decodeInvoice } from '../../../../src/payment/lightning/bolt11.ts';
import {
  BOLT11_PAYEE,
  changedInvoice,
  reworded,
  SCHEME_INVOICE,
  SCHEME_PARTS,
  SCHEME_PAYEE,
  SCHEME_REQUEST_HASH,
} from '../../../support/lightning/invoice.ts';

const hex = (value: Uint8Array | undefined) => value && Buffer.from(value).toString('hex');
const [p, s, h, x, c] = SCHEME_PARTS.fields as [TaggedField, TaggedField, TaggedField, TaggedField, TaggedField];
const n = bytesField('n', Buffer.from(SCHEME_PAYEE, 'hex'));
const d = bytesField('d', Buffer.from('an article'));
const m = bytesField('m', Uint8Array.of(1, 2, 3));
const features: TaggedField = { tag: '9', words: [16, 8, 0] };
const unknown: TaggedField = { tag: 'z', words: [1, 2, 3, 4] };

const decodeFields = (fields: readonly TaggedField[], tail: readonly number[] = []) =>
  decodeInvoice(changedInvoice({ fields, tail }));
const decodePrefix = (prefix: string) => decodeInvoice(changedInvoice({ prefix }));
/** The same field with its words changed. */
const withWords = (field: TaggedField, change: (words: number[]) => number[]): TaggedField => ({
  ...field,
  words: change([...field.words]),
});
const longer = (field: TaggedField) => withWords(field, (words) => [...words, 0]);
const shorter = (field: TaggedField) => withWords(field, (words) => words.slice(0, -1));
const padded = (field: TaggedField) => withWords(field, (words) => [...words.slice(0, -1), (words.at(-1) ?? 0) | 1]);

describe('currency and amount', () => {
  test.each([
    ['lnbc1', 'bc', 100_000_000_000n],
    ['lnbc20m', 'bc', 2_000_000_000n],
    ['lntb2500u', 'tb', 250_000_000n],
    ['lnbc250n', 'bc', 25_000n],
    ['lnbcrt250000p', 'bcrt', 25_000n],
    ['lntbs10p', 'tbs', 1n],
    ['lnbc123456789012345678901n', 'bc', 12_345_678_901_234_567_890_100n],
  ])('%s is exact', (prefix, currency, amountMsat) => {
    expect(decodePrefix(prefix)).toMatchObject({ currency, amountMsat });
  });

  test.each([
    ['no amount', 'lnbc'],
    ['a multiplier alone', 'lnbcm'],
    ['an amount of zero', 'lnbc0'],
    ['zero with a multiplier', 'lnbc0u'],
    ['a leading zero', 'lnbc0250n'],
    ['an unknown multiplier', 'lnbc250k'],
    ['two multipliers', 'lnbc250nn'],
    ['a multiplier before the digits', 'lnbcn250'],
    ['a tenth of a millisatoshi', 'lnbc250001p'],
    ['one picobitcoin', 'lnbc1p'],
    ['a sign', 'lnbc+250n'],
    ['a point', 'lnbc2.5u'],
    ['an exponent', 'lnbc25e1n'],
    ['a hexadecimal amount', 'lnbc0xfan'],
    ['a digit separator', 'lnbc2_50n'],
    ['an unknown currency', 'lnsb250n'],
    ['no currency', 'ln250n'],
    ['another protocol', 'lxbc250n'],
    ['something before it', 'xlnbc250n'],
    ['something after it', 'lnbc250n!'],
  ])('%s is refused', (_, prefix) => {
    expect(decodePrefix(prefix)).toBeNull();
  });
});

describe('creation and expiry', () => {
  test.each([0, 1, 1_700_000_000, 2 ** 32, 2 ** 35 - 1])('the timestamp holds %d seconds', (createdAt) => {
    expect(decodeInvoice(changedInvoice({ createdAt }))?.createdAt).toBe(createdAt);
  });

  test('expiry is 3600 s where nothing is said, and what is said elsewhere', () => {
    expect(decodeFields([p, s, h])?.expirySeconds).toBe(3600);
    expect(decodeFields([p, s, h, x])?.expirySeconds).toBe(300);
  });

  test.each([0, 31, 32, 2 ** 32, Number.MAX_SAFE_INTEGER])('an expiry of %d is exact', (seconds) => {
    expect(decodeFields([p, s, integerField('x', seconds)])?.expirySeconds).toBe(seconds);
  });

  test.each([
    ['a leading zero word', [0, 9, 12]],
    ['zero in two words', [0, 0]],
    ['no words', []],
    ['one more than the safe integers', integerField('x', 2 ** 53).words],
    ['1023 words', new Array<number>(1023).fill(31)],
  ])('an integer with %s is refused, as expiry and as final CLTV', (_, words) => {
    expect(decodeFields([p, s, { tag: 'x', words }])).toBeNull();
    expect(decodeFields([p, s, { tag: 'c', words }])).toBeNull();
    expect(decodeFields([p, s, { tag: 'z', words }])).not.toBeNull();
  });
});

describe('fields', () => {
  test('stand in any order', () => {
    expect(decodeFields([c, features, h, x, m, s, unknown, p])).toEqual(decodeInvoice(SCHEME_INVOICE));
  });

  test.each([
    ['payment hash', [s, h]],
    ['payment secret', [p, h]],
  ])('without a %s are refused', (_, fields) => {
    expect(decodeFields(fields)).toBeNull();
    expect(decodeFields([p, s])).not.toBeNull();
  });

  test.each(Object.entries({ p, s, d, n, x, c, m, features }))('%s stands at most once', (_, field) => {
    const others = [p, s].filter((other) => other !== field);
    expect(decodeFields([...others, field])).not.toBeNull();
    expect(decodeFields([...others, field, field])).toBeNull();
    expect(decodeFields([field, ...others, unknown, field])).toBeNull();
  });

  test('may be several description hashes, each of which is reported', () => {
    const other = bytesField('h', new Uint8Array(32).fill(7));
    expect(decodeFields([p, s])?.descriptionHashes).toEqual([]);
    expect(decodeFields([p, s, h, other])?.descriptionHashes.map(hex)).toEqual([SCHEME_REQUEST_HASH, '07'.repeat(32)]);
    expect(decodeFields([p, s, h, h])?.descriptionHashes).toHaveLength(2);
  });

  test('show an inline description, even an empty one', () => {
    expect(decodeFields([p, s, h, d])?.hasDescription).toBe(true);
    expect(decodeFields([p, s, { tag: 'd', words: [] }])?.hasDescription).toBe(true);
    expect(decodeFields([p, s, h])?.hasDescription).toBe(false);
  });

  test('may be several fallback addresses and routes', () => {
    const address = bytesField('f', new Uint8Array(20));
    const route = bytesField('r', new Uint8Array(51));
    expect(decodeFields([p, s, address, route, address, route])).not.toBeNull();
  });

  test.each(Object.entries({ p, s, h, n }))('%s has exactly its length and zero padding', (_, field) => {
    const others = [p, s].filter((other) => other !== field);
    expect(decodeFields([...others, field])).not.toBeNull();
    expect(decodeFields([...others, longer(field)])).toBeNull();
    expect(decodeFields([...others, shorter(field)])).toBeNull();
    expect(decodeFields([...others, padded(field)])).toBeNull();
    expect(decodeFields([...others, { ...field, words: [] }])).toBeNull();
  });

  test('of a wrong length are not skipped in favour of a right one', () => {
    expect(decodeFields([shorter(p), p, s])).toBeNull();
    expect(decodeFields([p, longer(s), s])).toBeNull();
    expect(decodeFields([p, s, h, shorter(h)])).toBeNull();
  });

  test.each([
    ['one word', [2]],
    ['a head without its whole length', [2, 0]],
    ['a head without its words', [2, 0, 1]],
    ['a word too few', [2, 0, 3, 1, 1]],
    ['a length far past the end', [2, 31, 31, 1]],
  ])('are refused where the last is truncated: %s', (_, tail) => {
    expect(decodeFields([p, s, h], tail)).toBeNull();
    expect(decodeFields([p, s, h], [2, 0, 1, 1])).not.toBeNull();
  });

  test('never reach into the signature', () => {
    expect(decodeFields([p, s, { ...h, length: 53 }])).toBeNull();
    expect(decodeFields([p, s, { ...unknown, length: unknown.words.length + 104 }])).toBeNull();
  });

  test('of unknown types are skipped, whatever they hold and however often', () => {
    const letters = [...'qzy8g2tvw0j54k6eua7l'];
    const fields = letters.map((tag, i) => ({ tag, words: new Array<number>(i).fill(31) }));
    expect(decodeFields([...fields, p, ...fields, s, ...fields])?.payee).toBeDefined();
  });

  test.each([[[]], [[0, 0, 0]], [[31, 31, 31]], [new Array<number>(200).fill(31)]])(
    'with feature bits %j are the payer’s business',
    (words) => {
      expect(decodeFields([p, s, { tag: '9', words }])).not.toBeNull();
    },
  );
});

describe('the signature', () => {
  /** The invoice with bytes of its signature changed: 64 bytes of r and s, then the recovery id. */
  const signed = (invoice: string, change: (signature: Buffer) => void) =>
    reworded(invoice, (words) => {
      const bits = words.slice(-104).map((word) => word.toString(2).padStart(5, '0'));
      const signature = Buffer.from(
        bits
          .join('')
          .match(/.{8}/g)!
          .map((byte) => Number.parseInt(byte, 2)),
      );
      change(signature);
      const back = [...signature].map((byte) => byte.toString(2).padStart(8, '0')).join('');
      return [...words.slice(0, -104), ...back.match(/.{5}/g)!.map((word) => Number.parseInt(word, 2))];
    });
  const named = changedInvoice({ fields: [p, s, h, n] });

  test('recovers the payee, or is held against the one that is named', () => {
    expect(hex(decodeInvoice(SCHEME_INVOICE)?.payee)).toBe(SCHEME_PAYEE);
    expect(hex(decodeInvoice(named)?.payee)).toBe(SCHEME_PAYEE);
  });

  test('of another key than the named one is refused', () => {
    const other = bytesField('n', Buffer.from(BOLT11_PAYEE, 'hex'));
    expect(decodeFields([p, s, h, other])).toBeNull();
  });

  test.each([
    ['an x that is on no curve', `02${'00'.repeat(31)}05`],
    ['an x beyond the field', `02${'ff'.repeat(32)}`],
    ['an uncompressed tag', `04${SCHEME_PAYEE.slice(2)}`],
    ['nothing', '00'.repeat(33)],
  ])('is not held against a named key with %s', (_, key) => {
    expect(decodeFields([p, s, h, bytesField('n', Buffer.from(key, 'hex'))])).toBeNull();
  });

  test('with a high s is refused under a named key, and recovers the same key without', () => {
    expect(decodeInvoice(changedInvoice({ fields: [p, s, h, n], highS: true }))).toBeNull();
    const high = changedInvoice({ highS: true });
    expect(high).not.toBe(SCHEME_INVOICE);
    expect(decodeInvoice(high)).toEqual(decodeInvoice(SCHEME_INVOICE));
  });

  test.each([4, 5, 27, 28, 31, 128, 255])('with recovery id %d is refused, named key or not', (recovery) => {
    expect(decodeInvoice(changedInvoice({ recovery }))).toBeNull();
    expect(decodeInvoice(changedInvoice({ recovery, fields: [p, s, h, n] }))).toBeNull();
  });

  test('with another recovery id from 0 to 3 never gives the same payee, unless it is named', () => {
    const payees = [0, 1, 2, 3].map((recovery) => hex(decodeInvoice(changedInvoice({ recovery }))?.payee));
    expect(payees.filter((payee) => payee === SCHEME_PAYEE)).toHaveLength(1);
    // Ids 2 and 3 are for an r beyond the order, which no honest signature has.
    expect(payees.slice(2)).toEqual([undefined, undefined]);
    const verified = [0, 1, 2, 3].map((recovery) => decodeInvoice(changedInvoice({ recovery, fields: [p, s, n] })));
    expect(verified.map((invoice) => hex(invoice?.payee))).toEqual(new Array(4).fill(SCHEME_PAYEE));
  });

  test.each([
    ['r is zero', (signature: Buffer) => signature.fill(0, 0, 32)],
    ['s is zero', (signature: Buffer) => signature.fill(0, 32, 64)],
    ['r is beyond the order', (signature: Buffer) => signature.fill(0xff, 0, 32)],
    ['s is beyond the order', (signature: Buffer) => signature.fill(0xff, 32, 64)],
  ])('where %s is refused, named key or not', (_, change) => {
    expect(decodeInvoice(signed(SCHEME_INVOICE, change))).toBeNull();
    expect(decodeInvoice(signed(named, change))).toBeNull();
    expect(signed(SCHEME_INVOICE, () => undefined)).toBe(SCHEME_INVOICE);
  });

  test('may have recovery ids 2 and 3, where r is small enough to be meant beyond the order', () => {
    const payees = [1, 2, 3, 4, 5, 6, 7, 8].flatMap((r) =>
      [2, 3].map((recovery) => {
        const small = Buffer.alloc(65);
        small.set([r], 31);
        small.set([1, recovery], 63);
        return hex(decodeInvoice(signed(SCHEME_INVOICE, (signature) => signature.set(small)))?.payee);
      }),
    );
    expect(payees.filter((payee) => payee !== undefined).length).toBeGreaterThan(2);
  });

  test.each([
    ['amount', 'lnbc25n', (words: number[]) => words],
    ['currency', 'lntb250n', (words: number[]) => words],
    ['timestamp', undefined, (words: number[]) => words.with(6, 31)],
    ['payment hash', undefined, (words: number[]) => words.with(20, (words[20] ?? 0) ^ 1)],
  ])('covers the %s: a change gives another payee, and none where one is named', (_, prefix, change) => {
    const changed = decodeInvoice(reworded(SCHEME_INVOICE, change, prefix));
    expect(hex(changed?.payee)).not.toBe(SCHEME_PAYEE);
    expect(decodeInvoice(reworded(named, change, prefix))).toBeNull();
    expect(decodeInvoice(reworded(named, (words) => words))).not.toBeNull();
  });
});
