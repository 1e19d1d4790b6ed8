import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { integerParam, parseParams } from '../../../src/catalogue/params.ts';
import { BadParameter } from '../../../src/errors.ts';
import { readArguments } from '../../../src/mcp/results.ts';

const endpoint = {
  params: z.object({
    gas: integerParam({ min: 1, max: 1000, default: 21, description: 'Gas' }),
    name: z.string().optional(),
  }),
};
const paramsOf = (given: unknown) => readArguments(endpoint, given).params;

/** The faults of arguments, by name. */
function faults(given: unknown): Record<string, string> {
  try {
    paramsOf(given);
  } catch (error) {
    if (!(error instanceof BadParameter)) throw error;
    return Object.fromEntries((error.errors ?? []).map(({ path, message }) => [path, message]));
  }
  return {};
}

describe('arguments', () => {
  test.each([
    ['a number', { gas: 50 }, { gas: '50' }],
    ['a number as text', { gas: '50' }, { gas: '50' }],
    ['a boolean', { name: true }, { name: 'true' }],
    ['nothing', undefined, {}],
    ['an empty object', {}, {}],
  ])('%s is the same request as the equivalent query', (_name, given, query) => {
    expect(paramsOf(given)).toEqual(parseParams(endpoint, query));
    expect(readArguments(endpoint, given).query).toEqual(query);
  });

  test.each([
    ['null', { gas: null }],
    ['an array', { gas: ['1'] }],
    ['an object', { gas: { valueOf: 1 } }],
  ])('%s is a fault of its parameter', (_name, given) => {
    expect(faults(given)).toEqual({ gas: 'must be a string, a number or a boolean' });
  });

  test.each([[1.5], [-1], [1001], [1e21], [Number.MAX_VALUE]])('the number %d is out of bounds', (gas) => {
    expect(Object.keys(faults({ gas }))).toEqual(['gas']);
  });

  test('an unknown name is a fault, whatever it is', () => {
    const given = JSON.parse('{ "__proto__": "1", "constructor": "2", "toString": "3", "tpyo": "4" }');
    expect(faults(given)).toEqual(
      Object.fromEntries(Object.keys(given).map((name) => [name, expect.stringMatching(/^no such parameter/)])),
    );
    expect(Object.getPrototypeOf(readArguments(endpoint, {}).query)).toBe(Object.prototype);
  });

  test('more text than a URL may have is refused, and just as much is accepted', () => {
    expect(faults({ name: 'x'.repeat(8188) })).toEqual({});
    expect(Object.keys(faults({ name: 'x'.repeat(8189) }))).toEqual(['arguments']);
  });

  test('too much text is named last, among ten faults at most', () => {
    const unreadable = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`a${at}`, null]));
    const namedOf = (count: number) => Object.keys(faults({ ...unreadable(count), name: 'x'.repeat(8192) }));
    expect(namedOf(2)).toEqual(['a0', 'a1', 'arguments']);
    expect(namedOf(11)).toEqual([...Object.keys(unreadable(9)), 'arguments']);
  });
});
