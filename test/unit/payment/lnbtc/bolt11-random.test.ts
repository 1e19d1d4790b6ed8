import { secp256k1 } from '@noble/curves/secp256k1.js';
import { describe, expect, test } from 'vitest';
import { invoiceOf } from '../../../../scripts/lib/lightning/encode-invoice.ts';
import { decodeInvoice } from '../../../../src/payment/lightning/bolt11.ts';
import { SCHEME_INVOICE } from '../../../support/lightning/invoice.ts';
import { seed, seededRandom } from '../../../support/random.ts';

const INVOICES = 250;
const KEYS = 8;

describe(`invoices by chance (SEED=${seed})`, () => {
  const random = seededRandom('bolt11');
  const bytes = (length: number) => Uint8Array.from({ length }, () => Math.floor(random() * 256));
  const below = (limit: number) => Math.floor(random() * limit);
  const maybe = <T>(value: T): T | null => (random() < 0.5 ? value : null);
  // Another library's view of the keys.
  const keys = Array.from({ length: KEYS }, () => {
    const privateKey = bytes(32);
    return { privateKey, payee: secp256k1.getPublicKey(privateKey, true) };
  });

  function anyTerms() {
    return {
      currency: (['bc', 'tb', 'bcrt', 'tbs'] as const)[below(4)] ?? 'bc',
      // As many digits as a millisatoshi amount may have, and every number of zeros behind it.
      amountMsat: BigInt(1 + below(10 ** (1 + below(7)))) * 10n ** BigInt(below(14)),
      createdAt: below(2 ** (1 + below(35))),
      expirySeconds: maybe(below(2 ** (1 + below(53)))),
      finalCltv: maybe(below(2000)),
      paymentHash: bytes(32),
      paymentSecret: bytes(32),
      descriptionHash: maybe(bytes(32)),
      description: maybe('✓'.repeat(below(200))),
      payeeField: random() < 0.5,
    };
  }

  test(`${INVOICES} are read field by field as they were written`, () => {
    for (let i = 0; i < INVOICES; i++) {
      const { privateKey, payee } = keys[i % KEYS]!;
      const terms = anyTerms();
      const highS = !terms.payeeField && random() < 0.5;
      const invoice = invoiceOf({ ...terms, privateKey, highS });
      const { currency, amountMsat, createdAt, expirySeconds, paymentHash, descriptionHash, description } = terms;
      expect(decodeInvoice(random() < 0.5 ? invoice : invoice.toUpperCase()), invoice).toEqual({
        currency,
        amountMsat,
        createdAt,
        paymentHash,
        payee,
        expirySeconds: expirySeconds ?? 3600,
        descriptionHashes: descriptionHash ? [descriptionHash] : [],
        hasDescription: description !== null,
      });
    }
  });

  test(`${INVOICES} with a named payee and a high s are refused`, () => {
    for (let i = 0; i < INVOICES; i++) {
      const { privateKey } = keys[i % KEYS]!;
      const invoice = invoiceOf({ ...anyTerms(), payeeField: true, privateKey, highS: true });
      expect(decodeInvoice(invoice), invoice).toBeNull();
    }
  });
});

describe("each character of the scheme's invoice", () => {
  // Letters and digits, of bech32 or not; separators of other formats; what case folding turns into a letter.
  const others = [...'0123456789abcdefghijklmnopqrstuvwxyzABQZ -_:+/=.\u0000\u0131\u212a'];

  test('changed to any other gives nothing', () => {
    for (let at = 0; at < SCHEME_INVOICE.length; at++) {
      for (const other of others) {
        if (other === SCHEME_INVOICE[at]) continue;
        const changed = SCHEME_INVOICE.slice(0, at) + other + SCHEME_INVOICE.slice(at + 1);
        if (decodeInvoice(changed) !== null) expect.fail(`read ${changed}`);
      }
    }
    expect(decodeInvoice(SCHEME_INVOICE)).not.toBeNull();
  });

  test('left out, doubled, or swapped with the next gives nothing', () => {
    for (let at = 0; at < SCHEME_INVOICE.length; at++) {
      const [before, here, next, after] = [
        SCHEME_INVOICE.slice(0, at),
        SCHEME_INVOICE[at] ?? '',
        SCHEME_INVOICE[at + 1] ?? '',
        SCHEME_INVOICE.slice(at + 2),
      ];
      expect(decodeInvoice(before + next + after)).toBeNull();
      expect(decodeInvoice(before + here + here + next + after)).toBeNull();
      if (here !== next && next !== '') expect(decodeInvoice(before + next + here + after)).toBeNull();
    }
  });
});
