import { describe, expect, test } from 'vitest';
import { searchParams } from '../../../src/discovery/search.ts';

describe('the parameters of a search', () => {
  test('all have defaults', () => {
    expect(searchParams.parse({})).toEqual({ q: '', limit: 10, offset: 0 });
  });

  test('are accepted up to their limits', () => {
    const given = {
      q: '😀'.repeat(200),
      limit: '50',
      maxPriceUsd: '0',
      source: 'market',
      seller: 'a.example',
      category: 'x'.repeat(60),
      network: 'eip155:5042',
    };
    expect(searchParams.safeParse(given).error).toBeUndefined();
  });

  test.each([
    ['q', 'x'.repeat(201)],
    ...['0', '51', '', '-1', '1.5', 'ten', '1e1'].map((limit) => ['limit', limit]),
    ...['', 'free', '-1', '1e3', '.5', '0x1', ' 1', '1,5', '9'.repeat(31)].map((price) => ['maxPriceUsd', price]),
    ...['', 'OWN', 'theirs'].map((source) => ['source', source]),
    ['seller', ''],
    ['seller', 'x'.repeat(254)],
    ['category', ' '],
    ['category', 'x'.repeat(61)],
    ['network', ''],
    ['network', 'x'.repeat(81)],
  ])('%s=%j is refused by name', (name, value) => {
    const { error } = searchParams.safeParse({ [name ?? '']: value });
    expect(error?.issues.map(({ path }) => path[0])).toContain(name);
  });
});
