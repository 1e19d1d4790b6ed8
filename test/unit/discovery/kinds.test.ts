import { describe, expect, test } from 'vitest';
import { KINDS, NOT_SOLD } from './kinds.ts';
import { LIGHTNING, ORIGIN, ownListings } from './world.ts';

const PREFIX = /^\/v1\/(paid|lightning)/;
const parts = ['open', 'held'] as const;

describe('questions by kind', () => {
  test('are twelve of each kind in each half, none twice, and ask for what is on sale', () => {
    const onSale = ownListings(LIGHTNING).map(({ entry }) => entry.url.replace(ORIGIN, '').replace(PREFIX, ''));
    const all = Object.values(KINDS).flatMap(({ open, held }) => [...open, ...held]);
    for (const part of parts) {
      for (const [kind, questions] of Object.entries(KINDS)) expect(questions[part], kind).toHaveLength(12);
      expect(NOT_SOLD[part]).toHaveLength(8);
    }
    expect(new Set([...all.map(([question]) => question), ...NOT_SOLD.open, ...NOT_SOLD.held]).size).toBe(72 + 16);
    expect(all.flatMap(([, ...paths]) => paths).filter((path) => !onSale.includes(path))).toEqual([]);
  });
});
