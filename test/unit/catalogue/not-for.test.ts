import { expect, test } from 'vitest';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import { notFor } from '../../../src/catalogue/endpoint.ts';

test('every entry says what it is not for, and an unknown one says nothing', () => {
  expect(catalogue.filter((entry) => notFor(entry) === null).map(({ path }) => path)).toEqual([]);
  expect(notFor({ path: '/no/such/route' })).toBeNull();
});
