import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  issueToken,
  readMacaroon,
  readToken,
  rootKeyOf,
  writeMacaroon,
} from '../../../../../src/payment/protocols/l402/l402.ts';

const DAY = 86_400;
const EXPIRES = 1_800_000_000;
const secrets = { current: Buffer.alloc(32, 1), previous: null };
const invoice = {
  text: 'lnbc10n1invoice',
  paymentHash: Buffer.alloc(32, 9),
  amountMsat: 1000n,
  payTo: '02'.repeat(33),
  expiresAt: EXPIRES,
};
const token = issueToken(secrets.current, invoice);
const content = readMacaroon(Buffer.from(token, 'base64'));

/** Our token with other caveats, signed with a key. */
function signed(caveats: readonly string[], secret = secrets.current, identifier = content?.identifier): string {
  const changed = { identifier: identifier ?? Buffer.alloc(66), caveats };
  return writeMacaroon(rootKeyOf(secret), 'percall', changed).toString('base64');
}

const ours = { invoice: invoice.text, paymentHash: invoice.paymentHash, isSigned: true };

test('a token names its invoice until it has been late for seven days and claimed for seven more', () => {
  expect(readToken(secrets, token, EXPIRES)).toEqual(ours);
  expect(readToken(secrets, token, EXPIRES + 14 * DAY)).toEqual(ours);
  expect(readToken(secrets, token, EXPIRES + 14 * DAY + 1)).toBeNull();
});

test.each(['.env.example', 'docs/operating.md'])('%s keeps the last secret for as long as it is needed', (file) => {
  const text = readFileSync(join(import.meta.dirname, '../../../../..', file), 'utf8');
  const weeks = [1, 2, 3].findLast((count) => readToken(secrets, token, EXPIRES + count * 7 * DAY));
  const said = { 1: 'a week', 2: 'two weeks', 3: 'three weeks' }[weeks ?? 1];
  const about = text.split('\n').filter((line) => /last change|first time 7 days|MPP_SECRET_PREVIOUS/.test(line));
  expect(about.join('\n')).toContain(`for ${said}`);
});

test('its identifier is version 0, the payment hash and 32 random bytes', () => {
  expect(content?.identifier.subarray(0, 34)).toEqual(Buffer.concat([Buffer.alloc(2), invoice.paymentHash]));
  expect(content?.identifier).toHaveLength(66);
  expect(issueToken(secrets.current, invoice)).not.toBe(token);
});

test('a token stays good after the secret has changed, while the last secret is known', () => {
  const current = Buffer.alloc(32, 2);
  expect(readToken({ current, previous: secrets.current }, token, EXPIRES)).toEqual(ours);
  expect(readToken({ current, previous: null }, token, EXPIRES)).toEqual({ ...ours, isSigned: false });
});

test('a caveat that its holder adds narrows a token, and never widens it', () => {
  const caveats = content?.caveats ?? [];
  expect(readToken(secrets, signed(caveats), EXPIRES)).toEqual(ours);
  expect(readToken(secrets, signed([...caveats, `percall_valid_until=${EXPIRES}`]), EXPIRES)).toEqual(ours);
  expect(readToken(secrets, signed([...caveats, `percall_valid_until=${EXPIRES - 1}`]), EXPIRES)).toBeNull();
  expect(readToken(secrets, signed([...caveats, 'percall_valid_until=9e99']), EXPIRES)).toBeNull();
  expect(readToken(secrets, signed([...caveats, 'colour=blue']), EXPIRES)).toBeNull();
});

test('a macaroon under another key is not signed by us, and one that says anything else is none of ours', () => {
  const caveats = content?.caveats ?? [];
  const another = readToken(secrets, signed(caveats, Buffer.alloc(32, 3)), EXPIRES);
  expect(another).toEqual({ ...ours, isSigned: false });
  expect(readToken(secrets, signed(caveats.slice(1)), EXPIRES)).toBeNull();
  expect(readToken(secrets, signed(caveats.slice(0, 2)), EXPIRES)).toBeNull();
  expect(readToken(secrets, signed(['services=other:0', ...caveats.slice(1)]), EXPIRES)).toBeNull();
  expect(readToken(secrets, signed(caveats, secrets.current, Buffer.alloc(65)), EXPIRES)).toBeNull();
  expect(readToken(secrets, signed(caveats, secrets.current, Buffer.alloc(66, 1)), EXPIRES)).toBeNull();
  expect(readToken(secrets, 'AAAA', EXPIRES)).toBeNull();
});

test('a macaroon has at most sixteen caveats, because each costs a hash before its signature is known', () => {
  const caveats = content?.caveats ?? [];
  const more = (count: number) => [
    ...caveats,
    ...Array.from({ length: count }, () => `percall_valid_until=${EXPIRES}`),
  ];
  expect(readToken(secrets, signed(more(13)), EXPIRES)).toEqual(ours);
  expect(readToken(secrets, signed(more(14)), EXPIRES)).toBeNull();
});
