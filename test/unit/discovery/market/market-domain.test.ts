import { expect, test } from 'vitest';
import { marketDomain } from '../../../../src/discovery/market-listing.ts';

test.each([
  ['https://api.seller.example/x', 'seller.example'],
  ['https://seller.co.uk/x', 'seller.co.uk'],
  ['https://a.b.seller.co.uk./x', 'seller.co.uk'],
  ['https://one.github.io/x', 'github.io'],
  ['https://another.github.io/x', 'github.io'],
  ['https://app.vercel.app/x', 'vercel.app'],
  // A host without a registered domain counts by itself.
  ['https://co.uk/x', 'co.uk'],
])('a listing at %s is counted under %s', (url, domain) => {
  expect(marketDomain(new URL(url))).toBe(domain);
});
