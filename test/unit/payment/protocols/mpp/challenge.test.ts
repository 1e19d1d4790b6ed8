import { expect, test } from 'vitest';
import {
  challengeId,
  challengeLine,
  encodeCanonical,
  isOurChallenge,
  withId,
} from '../../../../../src/payment/protocols/mpp/challenge.ts';

/** A challenge whose id another implementation verified. */
const SECRET = Buffer.from('percall-test-vector-secret-32byte');
const REQUEST = {
  amount: '1000',
  currency: '0x3600000000000000000000000000000000000000',
  methodDetails: { chainId: 5042, credentialTypes: ['authorization'], decimals: 6 },
  recipient: '0x1111111111111111111111111111111111111111',
};
const OPAQUE = 'eyJuIjoiQUFBQUFBQUFBQUFBQUFBQUFBQUFBQSJ9';
const ID = '19ldYz0MwccJD78BazWxp6T-4KiQ7i78rkpO1Mz2wWU';
const terms = {
  realm: 'percall.example',
  method: 'evm',
  intent: 'charge',
  request: encodeCanonical(REQUEST),
  expires: '2026-12-01T00:05:00Z',
  opaque: encodeCanonical({ n: 'AAAAAAAAAAAAAAAAAAAAAA' }),
};
const secrets = { current: SECRET, previous: null };

test('the id of the vector is computed to the byte', () => {
  expect(terms.opaque).toBe(OPAQUE);
  expect(challengeId(SECRET, terms)).toBe(ID);
});

test('a challenge is ours only with every one of its terms', () => {
  const challenge = { ...terms, id: ID };
  expect(isOurChallenge(secrets, challenge)).toBe(true);
  for (const name of Object.keys(challenge) as (keyof typeof challenge)[])
    expect(isOurChallenge(secrets, { ...challenge, [name]: `${challenge[name]}x` }), name).toBe(false);
  expect(isOurChallenge(secrets, { ...challenge, digest: 'x' })).toBe(false);
  // The same bytes in another spelling: one challenge has one id.
  for (const id of [`${challenge.id}=`, ` ${challenge.id}`, `${challenge.id}.`])
    expect(isOurChallenge(secrets, { ...challenge, id }), id).toBe(false);
  expect(isOurChallenge(secrets, { ...challenge, id: '' })).toBe(false);
  expect(isOurChallenge({ current: Buffer.alloc(32), previous: null }, challenge)).toBe(false);
  expect(isOurChallenge({ current: Buffer.alloc(32), previous: SECRET }, challenge)).toBe(true);
});

test('the header line quotes every value and names the scheme first', () => {
  const line = challengeLine(withId(SECRET, terms));
  expect(line).toBe(
    `Payment id="${ID}", realm="percall.example", method="evm", intent="charge", request="${terms.request}", expires="2026-12-01T00:05:00Z", opaque="${OPAQUE}"`,
  );
  const { opaque: _opaque, expires: _expires, ...less } = terms;
  expect(challengeLine(withId(SECRET, less))).toMatch(/, request="[\w-]+"$/);
});
