import { expect, test } from 'vitest';
import { macaroonPermissions } from '../../../../src/payment/lightning/nodes/lnd.ts';
import { macaroonOf } from '../../../support/lightning/macaroon.ts';
import { seed, seededRandom } from '../../../support/random.ts';

const bytes = Buffer.from(
  macaroonOf([
    ['info', 'read'],
    ['invoices', 'read', 'write'],
  ]),
  'hex',
);

test('permissions are read from the macaroon itself', () => {
  expect(macaroonPermissions(bytes)).toEqual(['info:read', 'invoices:read', 'invoices:write']);
});

/** A length-delimited piece, in any of the formats: a head of one byte, a length of one byte. */
const piece = (head: number, body: Buffer | string) => {
  const content = Buffer.from(body as string);
  return Buffer.concat([Buffer.from([head, content.length]), content]);
};
const field = (number: number, body: Buffer | string) => piece((number << 3) | 2, body);
const OPERATION = field(3, Buffer.concat([field(1, 'info'), field(2, 'read')]));
const LOCATION = piece(1, 'lnd');
const identifier = (...fields: Buffer[]) => piece(2, Buffer.concat([Buffer.from([3]), ...fields]));
const macaroon = (...packets: Buffer[]) => Buffer.concat([Buffer.from([2]), ...packets]);

test('a macaroon without a location is read, and one with an operation on nothing named', () => {
  expect(macaroonPermissions(macaroon(identifier(OPERATION)))).toEqual(['info:read']);
  expect(macaroonPermissions(macaroon(identifier(field(3, field(2, 'read')))))).toEqual([':read']);
});

test('names of 128 letters and more are read whole', () => {
  const [long, longer] = ['e'.repeat(128), 'a'.repeat(300)];
  expect(macaroonPermissions(Buffer.from(macaroonOf([[long, longer]]), 'hex'))).toEqual([`${long}:${longer}`]);
});

test('a macaroon of 8,192 bytes is read, and a longer one is not', () => {
  const padded = (length: number) => Buffer.concat([bytes, Buffer.alloc(length - bytes.length)]);
  expect(macaroonPermissions(padded(8192))).toEqual(macaroonPermissions(bytes));
  expect(macaroonPermissions(padded(8193))).toBeNull();
});

test('a number is read from up to three bytes, as many as the longest length takes', () => {
  const spelt = (...length: number[]) =>
    macaroon(Buffer.concat([Buffer.from([2, ...length]), Buffer.from([3]), OPERATION]));
  const length = OPERATION.length + 1;
  expect(macaroonPermissions(spelt(length | 128, 128, 0))).toEqual(['info:read']);
  expect(macaroonPermissions(spelt(length | 128, 128, 128, 0))).toBeNull();
});

test('a macaroon that ends before its identifier does gives no answer, wherever it is cut', () => {
  const whole = macaroon(LOCATION, identifier(OPERATION));
  expect(macaroonPermissions(whole)).toEqual(['info:read']);
  for (let end = 0; end < whole.length; end++) expect(macaroonPermissions(whole.subarray(0, end))).toBeNull();
});

test.each([
  ['an identifier of another version', macaroon(piece(2, Buffer.concat([Buffer.from([4]), OPERATION])))],
  ['another packet than the identifier', macaroon(LOCATION, piece(6, Buffer.concat([Buffer.from([3]), OPERATION])))],
  ['another packet than the location', macaroon(piece(6, 'lnd'), identifier(OPERATION))],
  ['two locations', macaroon(LOCATION, LOCATION, identifier(OPERATION))],
  ['a field that is not length-delimited', macaroon(identifier(Buffer.from([4 << 3, 0]), OPERATION))],
  ['an operation that is cut short', macaroon(identifier(field(3, Buffer.from([(2 << 3) | 2, 4, 97, 98, 99]))))],
  ['nothing', Buffer.alloc(0)],
  ['another format', Buffer.concat([Buffer.from([1]), bytes.subarray(1)])],
  ['no operations', Buffer.from(macaroonOf([]), 'hex')],
  ['more than a macaroon has', Buffer.concat([bytes, Buffer.alloc(10_000)])],
])('%s gives no answer, which is not the answer "none"', (_what, given) => {
  expect(macaroonPermissions(given)).toBeNull();
});

test(`damaged bytes give an answer or none, and never an exception (SEED=${seed})`, () => {
  const random = seededRandom('macaroon');
  for (let run = 0; run < 3000; run++) {
    const damaged = Buffer.from(bytes.subarray(0, 1 + Math.floor(random() * bytes.length)));
    damaged[Math.floor(random() * damaged.length)] = Math.floor(random() * 256);
    const found = macaroonPermissions(damaged);
    expect(found === null || Array.isArray(found)).toBe(true);
  }
});
