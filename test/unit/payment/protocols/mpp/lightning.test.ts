import { createHash } from 'node:crypto';
import { beforeEach, expect, test } from 'vitest';
import type { AuthScheme, Credential, QuotedInvoice } from '../../../../../src/payment/protocol.ts';
import { createMppLightning } from '../../../../../src/payment/protocols/mpp/lightning.ts';
import { type Challenge, challengeIn, credentialOf } from '../../../../support/usdc/mpp-buyer.ts';

const REALM = 'percall.example';
const PREIMAGE = 'ab'.repeat(32);
const DAY = 86_400;
const secrets = { current: Buffer.alloc(32, 1), previous: null };
const invoice: QuotedInvoice = {
  text: 'lnbc10n1invoice',
  paymentHash: createHash('sha256').update(Buffer.from(PREIMAGE, 'hex')).digest(),
  amountMsat: 7000n,
  payTo: '02'.repeat(33),
  expiresAt: 1_800_000_000,
};
let mpp: AuthScheme;
/** The method after its key was lost. */
let keyless: AuthScheme;
let challenge: Challenge;
beforeEach(() => {
  mpp = createMppLightning(secrets, REALM);
  keyless = createMppLightning({ current: Buffer.alloc(32, 2), previous: null }, REALM);
  challenge = challengeOf(invoice);
});

const challengeOf = (of: QuotedInvoice) => challengeIn({ headers: { 'www-authenticate': mpp.challenge(of) } });
const requestIn = (challenge: { request?: string }) =>
  JSON.parse(Buffer.from(challenge.request ?? '', 'base64url').toString());
const read = (changed: object = {}, preimage: unknown = PREIMAGE, by = mpp): Credential =>
  by.read(credentialOf({ ...challenge, ...changed }, { preimage }));

test('a challenge names the invoice, its whole satoshis, its node, its payment hash and its expiry', () => {
  const { id, request: _request, ...terms } = challenge;
  expect(id).toMatch(/^[\w-]{43}$/);
  expect(terms).toEqual({
    realm: REALM,
    method: 'lightning',
    intent: 'charge',
    expires: '2027-01-15T08:00:00Z',
  });
  expect(requestIn(challenge)).toEqual({
    amount: '7',
    currency: 'sat',
    recipient: invoice.payTo,
    methodDetails: {
      invoice: invoice.text,
      network: 'mainnet',
      paymentHash: Buffer.from(invoice.paymentHash).toString('hex'),
    },
  });
});

test.each([
  ['lnbc10n1', 'mainnet'],
  ['lnbcrt10n1', 'regtest'],
  ['lntb10n1', 'testnet'],
  ['lntbs10n1', 'signet'],
  ['lnxy10n1', undefined],
])('the network of %s is %s', (text, network) => {
  expect(requestIn(challengeOf({ ...invoice, text })).methodDetails.network).toBe(network);
});

test('a credential is read as the invoice and its preimage, with the challenge that it answers', () => {
  const credential = read();
  expect([mpp.protocol, mpp.names]).toEqual(['mpp', ['payment']]);
  expect(credential).toMatchObject({
    protocol: 'mpp',
    accepted: null,
    challengeId: challenge.id,
    payload: { invoice: invoice.text, preimage: PREIMAGE },
  });
  expect(credential.answered).toMatchObject({ isSigned: true, lateSeconds: 7 * DAY });
  expect(read({}, PREIMAGE.toUpperCase()).payload.preimage).toBe(PREIMAGE);
  expect(read({}, 7).payload.preimage).toBe(7);
});

test('a challenge is for its invoice alone, with each of its terms', () => {
  const { answered } = read();
  expect(answered?.isFor(invoice)).toBe(true);
  const others: Partial<QuotedInvoice>[] = [
    { text: 'lnbc10n1other' },
    { paymentHash: Buffer.alloc(32, 9) },
    { amountMsat: 8000n },
    { payTo: '03'.repeat(33) },
    { expiresAt: invoice.expiresAt + 1 },
  ];
  for (const other of others)
    expect(answered?.isFor({ ...invoice, ...other }), JSON.stringify(Object.keys(other))).toBe(false);
});

test('a challenge under another key is read with the preimage that opens its payment hash, and not as ours', () => {
  expect(read({}, PREIMAGE, keyless).answered).toMatchObject({ isSigned: false, lateSeconds: 7 * DAY });
  expect(read({}, PREIMAGE, keyless).answered?.isFor(invoice)).toBe(true);
  for (const preimage of ['cd'.repeat(32), PREIMAGE.slice(2), `${PREIMAGE}00`, '', null, 7])
    expect(() => read({}, preimage, keyless), String(preimage)).toThrow('invalid_challenge');
  // A preimage that is no hex decodes to nothing, whose hash anybody can name.
  const ofNothing = { ...requestIn(challenge), methodDetails: { paymentHash: createHash('sha256').digest('hex') } };
  const request = Buffer.from(JSON.stringify(ofNothing)).toString('base64url');
  for (const preimage of ['', 'xy', 'xy'.repeat(32)])
    expect(() => read({ request }, preimage, keyless), preimage).toThrow('invalid_challenge');
  expect(() => read({ request: Buffer.from('{}').toString('base64url') }, PREIMAGE, keyless)).toThrow(
    'invalid_challenge',
  );
});

test.each([
  ['realm', 'other.example'],
  ['expires', '2999-01-01T00:00:00Z'],
  ['expires', undefined],
  ['digest', 'x'],
  ['opaque', 'e30'],
])('a challenge under another key whose %s is %o is for no invoice of ours', (name, value) => {
  expect(read({ [name]: value }, PREIMAGE, keyless).answered?.isFor(invoice)).toBe(false);
});

test('a receipt names the payment hash and the challenge, and no preimage', () => {
  const receipt = { success: true, transaction: 'ee'.repeat(32), network: 'lnbtc:0' as const };
  const [[name, value] = []] = mpp.receipt(receipt, read(), 0);
  expect(name).toBe('payment-receipt');
  expect(JSON.parse(Buffer.from(String(value), 'base64url').toString())).toEqual({
    challengeId: challenge.id,
    method: 'lightning',
    reference: 'ee'.repeat(32),
    status: 'success',
    timestamp: '1970-01-01T00:00:00.000Z',
  });
});
