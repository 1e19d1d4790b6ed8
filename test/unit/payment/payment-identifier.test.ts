import { expect, test } from 'vitest';
import { BadParameter } from '../../../src/errors.ts';
import { identifierIn } from '../../../src/payment/protocols/x402/http.ts';

const withId = (id: unknown) => ({ 'payment-identifier': { info: { required: false, id } } });

test.each([
  ['none at all', undefined],
  ['null', null],
  ['no extension', {}],
  ['another extension', { bazaar: { info: { id: 'x'.repeat(20) } } }],
  ['the extension as null', { 'payment-identifier': null }],
  [
    'the declaration as the seller made it, without an id',
    { 'payment-identifier': { info: { required: false }, schema: {} } },
  ],
])('%s names no identifier', (_, extensions) => {
  expect(identifierIn(extensions)).toBeNull();
});

test.each(['a'.repeat(16), 'Z'.repeat(128), 'pay_7d5d747be160e280504c099d984bcfe0', '0123456789-_-_-_'])(
  'the identifier %s is taken',
  (id) => {
    expect(identifierIn(withId(id))).toEqual({ hash: expect.any(Buffer), isSingleUse: false });
    expect(identifierIn(withId(id))?.hash).toHaveLength(32);
  },
);

test.each([
  ['too short', 'a'.repeat(15)],
  ['too long', 'a'.repeat(129)],
  ['empty', ''],
  ['with a space', 'sixteen letters !'],
  ['with a line end behind it', `${'a'.repeat(16)}\n`],
  ['with letters of another alphabet', 'é'.repeat(16)],
  ['a number', 1234567890123456],
  ['null', null],
  ['an array', ['a'.repeat(16)]],
])('an identifier that is %s is refused with 400, before anything is bought under it', (_, id) => {
  expect(() => identifierIn(withId(id))).toThrow(BadParameter);
  expect(() => identifierIn(withId(id))).toThrow(expect.objectContaining({ code: 'payment_identifier_malformed' }));
});

test.each([
  ['text', 'pay_7d5d747be160e280504c099d984bcfe0'],
  ['an object without info', {}],
  ['an info of null', { info: null }],
  ['info that is no object', { info: 'pay_7d5d747be160e280504c099d984bcfe0' }],
])('an extension that is %s is refused rather than overlooked', (_, extension) => {
  expect(() => identifierIn({ 'payment-identifier': extension })).toThrow(BadParameter);
});

test('a refusal names the member that is wrong, and what it must be', () => {
  const errorsOf = (extension: unknown) => {
    try {
      return identifierIn({ 'payment-identifier': extension });
    } catch (error) {
      return (error as BadParameter).errors;
    }
  };
  expect(errorsOf({ info: 'text' })).toEqual([
    { path: 'extensions.payment-identifier.info', message: 'must be an object' },
  ]);
  expect(errorsOf({ info: { id: 'short' } })).toEqual([
    {
      path: 'extensions.payment-identifier.info.id',
      message: 'must be 16 to 128 letters, digits, hyphens and underscores',
    },
  ]);
});

test('equal identifiers have equal hashes for every client, and different identifiers have different hashes', () => {
  const [one, two] = ['identifier-number-1', 'identifier-number-2'];
  expect(identifierIn(withId(one))).toEqual(identifierIn({ 'payment-identifier': { info: { id: one } } }));
  expect(identifierIn(withId(one))).not.toEqual(identifierIn(withId(two)));
  expect(identifierIn(withId(one))).not.toEqual(identifierIn(withId(one.toUpperCase())));
  expect(Buffer.from(identifierIn(withId(one))?.hash ?? []).includes(one)).toBe(false);
});
