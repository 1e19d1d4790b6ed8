import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { integerParam, parseParams } from '../../../src/catalogue/params.ts';
import { BadParameter } from '../../../src/errors.ts';

const endpoint = {
  params: z.object({
    limit: integerParam({ min: 1, max: 20, default: 5, description: 'How many' }),
    q: z.string({ error: 'required' }).min(1, 'not empty'),
  }),
};

function faults(query: Record<string, unknown>): unknown[] {
  try {
    parseParams(endpoint, query);
  } catch (error) {
    if (error instanceof BadParameter) return (error.errors ?? []).map(({ path }) => path);
    throw error;
  }
  return [];
}

describe('parseParams', () => {
  it('gives parsed values and defaults', () => {
    expect(parseParams(endpoint, { q: 'a' })).toEqual({ q: 'a', limit: 5 });
    expect(parseParams(endpoint, { q: 'a', limit: '20' })).toEqual({ q: 'a', limit: 20 });
  });

  it('names every fault at once', () => {
    expect(faults({ limit: '0' })).toEqual(['limit', 'q']);
  });

  it.each(['', '0', '21', '-1', '1.5', '1e1', ' 1', '0x1', '1_0', '٣', '9'.repeat(40)])(
    'refuses %j as a whole number in bounds',
    (limit) => {
      expect(faults({ q: 'a', limit })).toEqual(['limit']);
    },
  );

  it('refuses an unknown or repeated parameter, and says which there are', () => {
    expect(faults({ q: 'a', limt: '3' })).toEqual(['limt']);
    expect(() => parseParams(endpoint, { q: 'a', limt: '3' })).toThrow('limt: no such parameter; there are limit, q');
    expect(() => parseParams({ params: z.object({}) }, { x: '1' })).toThrow(
      'x: no such parameter; this route takes none',
    );
    expect(faults({ q: ['a', 'b'] })).toContain('q');
  });

  it('says that a required parameter is missing, and shows an example where there is one', () => {
    const example = { params: { q: 'tea' }, result: {} };
    const plain = { params: z.object({ q: z.string().min(1, 'not empty') }) };
    expect(() => parseParams(plain, {})).toThrow(/^q: missing$/);
    expect(() => parseParams({ ...plain, example }, {})).toThrow(/^q: missing, for example tea$/);
    expect(() => parseParams({ ...plain, example }, { q: '' })).toThrow(/^q: not empty$/);
  });

  it('says that a required parameter is missing in the endpoint’s own words, where it has some', () => {
    expect(() => parseParams(endpoint, {})).toThrow(/^q: required$/);
  });

  it('names a repeated parameter once', () => {
    expect(() => parseParams(endpoint, { q: ['a', 'b'] })).toThrow(/^q: given more than once$/);
  });

  it('lists ten unknown names and no more, because a URL has room for thousands', () => {
    const query = Object.fromEntries(Array.from({ length: 2000 }, (_, n) => [`x${n}`, '1']));
    expect(faults({ ...query, q: 'a' })).toHaveLength(10);
  });

  it('handles names that every object has', () => {
    for (const name of ['__proto__', 'constructor', 'toString']) {
      const query = Object.assign(Object.create(null), { q: 'a' });
      Object.defineProperty(query, name, { value: 'x', enumerable: true });
      expect(faults(query)).toEqual([name]);
    }
  });
});
