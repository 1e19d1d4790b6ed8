import { expect, test } from 'vitest';
import { createOffer } from '../../../src/wiring/surfaces.ts';
import { latchedEndpoint } from '../../support/service/latch.ts';
import { TERMS } from '../../support/service/terms.ts';

test('an offer is not made for a route without a price', () => {
  const free = { ...latchedEndpoint('/test/free').endpoint, price: null };
  expect(() => createOffer(free as never, TERMS)).toThrow('/test/free has no price');
});
