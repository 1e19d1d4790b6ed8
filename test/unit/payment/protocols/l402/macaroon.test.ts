import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { readMacaroon, signMacaroon, writeMacaroon } from '../../../../../src/payment/protocols/l402/l402.ts';

/** A macaroon that another implementation made and verified. */
const ROOT_KEY = Buffer.alloc(32, 7);
const PAYMENT_HASH = createHash('sha256').update(Buffer.alloc(32, 1)).digest();
const CONTENT = {
  identifier: Buffer.concat([Buffer.alloc(2), PAYMENT_HASH, Buffer.alloc(32, 2)]),
  caveats: ['services=percall:0', 'percall_valid_until=1796083500'],
};
const SIGNATURE = '5b9eb00177a0d90198d2f2f37df50af00ab0a078fe0dac7324a66779f4b8184e';
const TOKEN =
  'AgEHcGVyY2FsbAJCAAByzW6EIsQH+20JhpDxEwt97X7C9/Xh0wvZ1SHwFTY3kwICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAAISc2VydmljZXM9cGVyY2FsbDowAAIecGVyY2FsbF92YWxpZF91bnRpbD0xNzk2MDgzNTAwAAAGIFuesAF3oNkBmNLy8331CvAKsKB4/g2scySmZ3n0uBhO';
const BYTES = Buffer.from(TOKEN, 'base64');

test('the macaroon of the vector is written to the byte', () => {
  expect(writeMacaroon(ROOT_KEY, 'percall', CONTENT).toString('base64')).toBe(TOKEN);
  expect(signMacaroon(ROOT_KEY, CONTENT).toString('hex')).toBe(SIGNATURE);
});

test('the macaroon of the vector is read, with its signature', () => {
  expect(readMacaroon(BYTES)).toEqual({ ...CONTENT, signature: Buffer.from(SIGNATURE, 'hex') });
});

test('a caveat of several hundred characters is written and read', () => {
  const long = { ...CONTENT, caveats: [`percall_invoice=lnbc${'q'.repeat(700)}`, 'x='] };
  expect(readMacaroon(writeMacaroon(ROOT_KEY, 'percall', long))).toMatchObject(long);
});

test('a macaroon that is cut short anywhere, or longer, is no macaroon', () => {
  for (let length = 0; length < BYTES.length; length++) expect(readMacaroon(BYTES.subarray(0, length))).toBeNull();
  expect(readMacaroon(Buffer.concat([BYTES, Buffer.of(0)]))).toBeNull();
});

test('no single byte can be changed without another macaroon, or another signature', () => {
  for (let at = 0; at < BYTES.length; at++) {
    const changed = Buffer.from(BYTES);
    changed[at] = (changed[at] ?? 0) ^ 1;
    const read = readMacaroon(changed);
    const isSigned = read !== null && signMacaroon(ROOT_KEY, read).equals(read.signature);
    // The location is a hint that no signature covers.
    expect(isSigned, `byte ${at}`).toBe(at >= 3 && at < 10);
  }
});

test('the text of a caveat that is not UTF-8 does not match its signature', () => {
  const changed = Buffer.from(BYTES);
  changed[BYTES.indexOf('percall_valid_until')] = 0xff;
  const read = readMacaroon(changed);
  expect(read && signMacaroon(ROOT_KEY, read).equals(read.signature)).toBe(false);
});
