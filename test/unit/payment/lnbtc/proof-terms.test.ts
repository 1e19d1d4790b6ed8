import secp256k1 from 'secp256k1';
import { expect, test } from 'vitest';
import { readTerms } from '../../../../src/payment/lightning/proof.ts';
import { PAY_TO, presentation } from './proof-cases.ts';

const MALFORMED = 'invalid_exact_lnbtc_pay_to_malformed';
const termsFor = (payTo: string) => readTerms({ ...presentation().requirement, payTo }, 300);
const keyOf = (seller: number) => {
  const privateKey = Buffer.alloc(32);
  privateKey.writeUInt32BE(seller, 28);
  return Buffer.from(secp256k1.publicKeyCreate(privateKey)).toString('hex');
};

test('a key is judged by itself, however many good ones came before', () => {
  const off = `02${'00'.repeat(31)}05`;
  expect([termsFor(off), termsFor(off)]).toEqual([MALFORMED, MALFORMED]);
  const keys = Array.from({ length: 1100 }, (_, n) => keyOf(n + 1));
  const read = [...keys, ...keys].map((key) => {
    const terms = termsFor(key);
    return typeof terms === 'string' ? terms : Buffer.from(terms.payTo).toString('hex');
  });
  expect(read).toEqual([...keys, ...keys]);
  expect(termsFor(off)).toBe(MALFORMED);
  expect(termsFor(`03${off.slice(2)}`)).toBe(MALFORMED);
});

test('the key of one verdict is not that of another', () => {
  const [first, second] = [termsFor(PAY_TO), termsFor(PAY_TO)];
  if (typeof first === 'string' || typeof second === 'string') throw new Error('refused');
  first.payTo.fill(0);
  expect(Buffer.from(second.payTo).toString('hex')).toBe(PAY_TO);
  expect(termsFor(PAY_TO)).toMatchObject({ payTo: Buffer.from(PAY_TO, 'hex') });
});
