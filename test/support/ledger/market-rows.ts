import type { ListingRow } from '../../../src/store/ports/market.ts';

/** A listing of the market that was checked once, without a fault. */
export const listingRow = (more: Partial<ListingRow> = {}): ListingRow => ({
  place: 'a.example/x',
  domain: 'a.example',
  listing: '{"n":1}',
  method: 'GET',
  pricedAt: 1000,
  checkedAt: 1000,
  reason: null,
  failures: 0,
  offlineAt: null,
  dueAt: 5000,
  ...more,
});
