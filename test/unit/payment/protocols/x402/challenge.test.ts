import { expect, test } from 'vitest';
import { createOffer } from '../../../../../src/wiring/surfaces.ts';
import { challengeOf } from '../../../../support/service/challenge-of.ts';
import { latchedEndpoint } from '../../../../support/service/latch.ts';
import { TERMS } from '../../../../support/service/terms.ts';

const { endpoint, path } = latchedEndpoint();
const offer = createOffer(endpoint as never, TERMS);
const challenge = challengeOf(offer);
const decoded = (header: string) => JSON.parse(Buffer.from(header, 'base64').toString('utf8'));
const url = (target: string): string => decoded(challenge(target)).resource.url;

test('a challenge is base64 of JSON whatever the length of its address, and says what to pay for what', () => {
  for (const target of [path, `${path}?t`, `${path}?ta`, `${path}?tag`, `${path}?tag=ä`]) {
    const header = challenge(target);
    expect(Buffer.from(header, 'base64').toString('base64')).toBe(header);
    expect(decoded(header)).toMatchObject({
      x402Version: 2,
      error: 'Payment required',
      accepts: offer.accepts,
      resource: { description: endpoint.summary, mimeType: 'application/json' },
    });
  }
});

test('a challenge says why a payment was refused, on the listed address and on any other', () => {
  for (const target of [path, `${path}?tag=a`])
    expect(decoded(challenge(target, 'payment_already_used'))).toMatchObject({
      error: 'payment_already_used',
      resource: { url: `${TERMS.publicOrigin}${target}` },
    });
});

test('a challenge names the address that was asked for, and no other host than ours', () => {
  expect(url(path)).toBe(`${TERMS.publicOrigin}${path}`);
  expect(url(`${path}?tag=a`)).toBe(`${TERMS.publicOrigin}${path}?tag=a`);
  expect(url(`https://elsewhere.example${path}?tag=a`)).toBe(`${TERMS.publicOrigin}${path}?tag=a`);
});

test('a challenge leaves the query out of an address that is too long for a header, and cuts a path that is', () => {
  const query = (length: number) => `${path}?tag=${'a'.repeat(length - path.length - 5)}`;
  expect(url(query(1024))).toBe(`${TERMS.publicOrigin}${query(1024)}`);
  expect(url(query(1025))).toBe(`${TERMS.publicOrigin}${path}`);
  expect(url(`/${'b'.repeat(2000)}`)).toBe(`${TERMS.publicOrigin}/${'b'.repeat(1023)}`);
});
