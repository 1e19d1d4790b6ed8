import { describe, expect, test } from 'vitest';
import { bytesField } from '../../scripts/lib/lightning/encode-invoice.ts';
import { decodeInvoice } from '../../src/payment/lightning/bolt11.ts';
import { changedInvoice, reworded, SCHEME_INVOICE, SCHEME_PARTS, SCHEME_PAYEE } from '../support/lightning/invoice.ts';
import { seed, seededRandom } from '../support/random.ts';

const ROUNDS = process.env.SLOW ? 10_000 : 2500;
/** The number of words of the signature, which follow the signed words. */
const SIGNATURE_WORDS = 104;

/** Decodes and checks that the result is complete. Any exception fails the test. */
function decodeWhole(text: unknown) {
  const invoice = decodeInvoice(text);
  if (invoice === null) return null;
  const { amountMsat, createdAt, expirySeconds, paymentHash, descriptionHashes, payee } = invoice;
  const whole =
    amountMsat > 0n &&
    createdAt >= 0 &&
    createdAt < 2 ** 35 &&
    Number.isSafeInteger(expirySeconds) &&
    [paymentHash, ...descriptionHashes].every(({ length }) => length === 32) &&
    payee.length === 33;
  if (!whole) expect.fail(`half read: ${String(text)}`);
  return invoice;
}

const payeeOf = (text: string) => {
  const invoice = decodeWhole(text);
  return invoice && Buffer.from(invoice.payee).toString('hex');
};

describe(`the decoder of invoices (SEED=${seed})`, () => {
  const random = seededRandom('bolt11-fuzz');
  const below = (limit: number) => Math.floor(random() * limit);
  const named = changedInvoice({
    fields: [...SCHEME_PARTS.fields, bytesField('n', Buffer.from(SCHEME_PAYEE, 'hex'))],
  });

  test('reads nothing in random bytes and random text', () => {
    for (let i = 0; i < ROUNDS; i++) {
      const length = below(400);
      const bytes = Buffer.from(Uint8Array.from({ length }, () => below(256)));
      const units = String.fromCharCode(...Array.from({ length }, () => below(0x10000)));
      for (const text of [bytes.toString('latin1'), bytes.toString('utf8'), units, `lnbc250n1${units}`, bytes]) {
        if (decodeWhole(text) !== null) expect.fail(`read ${String(text)}`);
      }
    }
    expect(decodeWhole(SCHEME_INVOICE)).not.toBeNull();
  });

  test('reads nothing in an invoice with part of its text replaced', () => {
    for (let i = 0; i < ROUNDS; i++) {
      const at = below(SCHEME_INVOICE.length);
      const other = String.fromCodePoint(below(0x110000)).repeat(1 + below(3));
      const text = SCHEME_INVOICE.slice(0, at) + other + SCHEME_INVOICE.slice(at + below(4));
      if (text !== SCHEME_INVOICE && decodeWhole(text) !== null) expect.fail(`read ${text}`);
    }
  });

  /** Some signed words changed, removed or inserted. */
  function disturbed(words: readonly number[]): number[] {
    const signed = words.slice(0, -SIGNATURE_WORDS);
    for (let n = 1 + below(4); n > 0; n--) {
      const put = Array.from({ length: below(3) }, () => below(32));
      signed.splice(below(signed.length), below(3), ...put);
    }
    return [...signed, ...words.slice(-SIGNATURE_WORDS)];
  }

  test('does not attribute changed words with a correct checksum to the payee', () => {
    const counts = { read: 0, refused: 0 };
    // One changed invoice in twenty is read. The test goes on until each outcome came often enough, whatever the seed.
    const isEnough = () => Math.min(counts.read, counts.refused) > 100;
    for (let i = 0; i < ROUNDS || (!isEnough() && i < 10 * ROUNDS); i++) {
      const invoice = i % 2 === 0 ? SCHEME_INVOICE : named;
      const text = reworded(invoice, disturbed);
      if (text === invoice) continue;
      const payee = payeeOf(text);
      counts[payee === null ? 'refused' : 'read']++;
      if (payee === SCHEME_PAYEE) expect.fail(`read without a valid signature: ${text}`);
    }
    // Recovery gives a key for nearly every digest. So some invoices must have been read, and the test covered both outcomes.
    expect(counts.read).toBeGreaterThan(100);
    expect(counts.refused).toBeGreaterThan(100);
  });

  test('reads random words with a correct checksum as a whole invoice or not at all', () => {
    for (let i = 0; i < ROUNDS; i++) {
      const prefix = ['lnbc1', 'lntb10p', 'lnbc', 'x', 'lnbcrt250n'][below(5)] ?? '';
      decodeWhole(reworded(SCHEME_INVOICE, () => Array.from({ length: below(500) }, () => below(32)), prefix));
    }
    for (let i = 0; i < ROUNDS; i++) {
      // A signature of random bytes under valid fields, which reaches the native library.
      const signature = Array.from({ length: SIGNATURE_WORDS - 1 }, () => below(32));
      decodeWhole(
        reworded(i % 2 === 0 ? SCHEME_INVOICE : named, (words) => [
          ...words.slice(0, -SIGNATURE_WORDS),
          ...signature,
          below(8),
        ]),
      );
    }
    expect(decodeWhole(named)).not.toBeNull();
  });
});
