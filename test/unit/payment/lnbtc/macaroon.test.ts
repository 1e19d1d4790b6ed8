import { expect, test } from 'vitest';
import { macaroonPermissions } from '../../../../src/payment/lnbtc/macaroon.ts';
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

test.each([
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
