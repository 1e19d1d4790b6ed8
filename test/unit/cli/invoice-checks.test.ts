import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { readAuthChallenges, readPaymentChallenges } from '../../../cli/challenges.ts';
import { checkInvoiceOffer, type InvoiceOffer, readL402Offer, readMppInvoice } from '../../../cli/ways/l402.ts';
import { invoiceOf } from '../../../scripts/lib/lightning/encode-invoice.ts';
import { writeMacaroon } from '../../../src/payment/protocols/l402/l402.ts';
import { SCHEME_KEY } from '../../support/lightning/invoice.ts';

const NOW = 1_700_000_000;
const preimage = '07'.repeat(32);
const paymentHash = createHash('sha256').update(preimage, 'hex').digest();
const OTHER_HASH = Buffer.alloc(32, 9);
const LIMITS = { now: NOW, ceilingMsat: 25_000n };

type Parts = Partial<Parameters<typeof invoiceOf>[0]>;
const invoice = (parts: Parts = {}) =>
  invoiceOf({
    privateKey: SCHEME_KEY,
    amountMsat: 25_000n,
    createdAt: NOW,
    paymentHash,
    description: 'a call',
    ...parts,
  });

const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const inTime = new Date((NOW + 60) * 1000).toISOString();

/** A Payment challenge as a header, with some members changed. */
function mppHeader({
  request = {},
  details = {},
  params = {},
}: Record<'request' | 'details' | 'params', object> | Record<string, object>) {
  const methodDetails = {
    invoice: invoice(),
    paymentHash: paymentHash.toString('hex'),
    network: 'mainnet',
    ...details,
  };
  const given = {
    id: 'a',
    realm: 'r',
    method: 'lightning',
    intent: 'charge',
    expires: inTime,
    request: base64url({ amount: '25', currency: 'sat', methodDetails, ...request }),
    ...params,
  };
  return `Payment ${Object.entries(given)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}="${value}"`)
    .join(', ')}`;
}

function mpp(changes: Record<string, object> = {}) {
  const read = readPaymentChallenges(readAuthChallenges(mppHeader(changes)));
  const [fault] = read.flatMap((one) => ('fault' in one ? [one] : []));
  return fault ?? readMppInvoice(read.flatMap((one) => ('fault' in one ? [] : [one])));
}

function l402(params: Record<string, string | undefined> = {}, scheme = 'L402') {
  const given = { macaroon: token(paymentHash), invoice: invoice(), ...params };
  const text = Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [`${name}="${value}"`]));
  return readL402Offer(readAuthChallenges(`${scheme} ${text.join(', ')}`));
}

function token(hash: Buffer): string {
  const identifier = Buffer.concat([Buffer.alloc(2), hash, Buffer.alloc(32, 2)]);
  return writeMacaroon(Buffer.alloc(32, 7), 'shop', { identifier, caveats: [] }).toString('base64');
}

function reasonFor(offer: ReturnType<typeof l402>, limits = LIMITS): string | null {
  if (offer === null || 'fault' in offer) return offer?.fault ?? 'no offer';
  const verdict = checkInvoiceOffer(offer, limits);
  return verdict.ok ? null : verdict.reason;
}

describe('an invoice of MPP is paid', () => {
  test('when it is what its offer says', () => {
    expect(reasonFor(mpp())).toBeNull();
    expect(reasonFor(mpp({ details: { paymentHash: undefined, network: undefined } }))).toBeNull();
    expect(reasonFor(mpp({ params: { expires: undefined } }))).toBeNull();
  });

  test.each<[string, Record<string, object>, string]>([
    [
      'the invoice is over more than the amount',
      { request: { amount: '1' } },
      'the invoice is over 25 sat, but the offer says 1 sat',
    ],
    [
      'the invoice is over less than the amount',
      { request: { amount: '26' } },
      'the invoice is over 25 sat, but the offer says 26 sat',
    ],
    [
      'the invoice is on another network',
      { details: { network: 'regtest' } },
      'the invoice is on mainnet, but the offer says regtest',
    ],
    [
      'no network is named and the invoice is not on the main one',
      { details: { invoice: invoice({ currency: 'tb' }), network: undefined } },
      'the invoice is on testnet, but the offer says mainnet',
    ],
    [
      'the payment hash is of another invoice',
      { details: { paymentHash: OTHER_HASH.toString('hex') } },
      'another payment hash',
    ],
    ['the offer has expired', { params: { expires: new Date((NOW - 5) * 1000).toISOString() } }, 'expired 5 s ago'],
    ['the invoice has expired', { details: { invoice: invoice({ createdAt: NOW - 301 }) } }, 'expired 1 s ago'],
    [
      'the invoice has no amount',
      { details: { invoice: invoice({ amountMsat: null }) } },
      'cannot be read, or has no amount',
    ],
    ['the invoice is none', { details: { invoice: 'lnbc1' } }, 'cannot be read, or has no amount'],
    ['the invoice is missing', { details: { invoice: undefined } }, 'it has no invoice'],
    ['the amount is in another unit', { request: { currency: 'BTC' } }, 'its amount is not in sat'],
    ['the amount is no whole number', { request: { amount: '1.5' } }, 'its amount is no positive whole number'],
    ['the request is no JSON', { params: { request: '!!!' } }, 'no JSON in base64url'],
    ['the expiry is no time', { params: { expires: 'tomorrow' } }, 'no RFC 3339 time'],
    ['the id is empty', { params: { id: '' } }, 'has no id'],
    ['the credential must go elsewhere', { params: { header: 'X-Pay' } }, 'a header of its own'],
  ])('never when %s', (_how, changes, reason) => {
    expect(reasonFor(mpp(changes))).toContain(reason);
  });

  test('never above the ceiling', () => {
    expect(reasonFor(mpp(), { ...LIMITS, ceilingMsat: 24_999n })).toBe(
      '25 sat is above the ceiling of 24.999 sat (--max-sats)',
    );
  });

  test('never for another intent or method', () => {
    expect(mpp({ params: { intent: 'session' } })).toBeNull();
    expect(mpp({ params: { method: 'evm' } })).toBeNull();
  });
});

describe('an invoice of L402 is paid', () => {
  test.each<[string, ReturnType<typeof l402>]>([
    ['a macaroon that commits to it', l402()],
    ['a token that says nothing', l402({ macaroon: 'b3BhcXVl.abcdef' })],
    ['the form of the specification', l402({ macaroon: undefined, token: token(paymentHash), version: '0' })],
    ['both forms', l402({ token: token(paymentHash) })],
    ['the old name of the scheme', l402({}, 'LSAT')],
  ])('with %s', (_how, offer) => {
    expect(reasonFor(offer)).toBeNull();
  });

  test.each<[string, ReturnType<typeof l402>, string]>([
    [
      'the macaroon is for another invoice',
      l402({ macaroon: token(OTHER_HASH) }),
      'the L402 token is for another invoice',
    ],
    ['two tokens differ', l402({ token: token(OTHER_HASH) }), 'two different tokens'],
    ['there is no token', l402({ macaroon: undefined }), 'no token'],
    ['the token would break the header', l402({ macaroon: 'a:b' }), 'no token that can be sent back'],
    ['there is no invoice', l402({ invoice: undefined }), 'no invoice'],
    ['the invoice has expired', l402({ invoice: invoice({ createdAt: NOW - 300 }) }), 'expired 0 s ago'],
    ['the invoice was made in the future', l402({ invoice: invoice({ createdAt: NOW + 61 }) }), 'made in the future'],
    ['the invoice was changed', l402({ invoice: `${invoice().slice(0, -1)}q` }), 'cannot be read'],
  ])('never when %s', (_how, offer, reason) => {
    expect(reasonFor(offer)).toContain(reason);
  });

  test('never above the ceiling', () => {
    expect(reasonFor(l402(), { ...LIMITS, ceilingMsat: 0n })).toContain('above the ceiling');
  });

  test('with its scheme as the seller spells it', () => {
    const proofs = [l402(), l402({}, 'LSAT')] as InvoiceOffer[];
    expect(proofs.map(({ proof }) => proof)).toMatchObject([{ scheme: 'L402' }, { scheme: 'LSAT' }]);
  });
});
