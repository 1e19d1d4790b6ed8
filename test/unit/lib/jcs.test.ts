import { describe, expect, test } from 'vitest';
import { jcs } from '../../../src/lib/jcs.ts';
import { seed, seededRandom } from '../../support/random.ts';
import { randomJson } from '../../support/random-json.ts';

const nested = (depth: number): unknown => {
  let value: unknown = 1;
  for (let level = 0; level < depth; level++) value = level % 2 ? [value] : { a: value };
  return value;
};

describe('what is plain JSON data has exactly one text', () => {
  test.each<[string, unknown, string]>([
    ['literals', [null, true, false], '[null,true,false]'],
    // RFC 8785, 3.2.3: the RFC's own example of sorting.
    [
      'keys by UTF-16 code units, not by code points or locale',
      { '\u20ac': 1, '\r': 2, '\ufb33': 3, 1: 4, '\u{1f600}': 5, '\u0080': 6, '\u00f6': 7 },
      '{"\\r":2,"1":4,"\u0080":6,"\u00f6":7,"\u20ac":1,"\u{1f600}":5,"\ufb33":3}',
    ],
    ['integer-like keys as text', { 10: 1, 9: 2, a: 3, B: 4 }, '{"10":1,"9":2,"B":4,"a":3}'],
    [
      'nested objects and arrays, the order of elements kept',
      { b: [3, { d: 1, c: 2 }, []], a: {} },
      '{"a":{},"b":[3,{"c":2,"d":1},[]]}',
    ],
    // RFC 8785, 3.2.2.2 and 3.2.2.3.
    [
      'strings with the shortest escapes',
      '\u20ac$\u000f\nA\'B"\\\\"/\b\t\f\r\u007f\u2028',
      '"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/\\b\\t\\f\\r\u007f\u2028"',
    ],
    [
      'numbers as ECMAScript writes them',
      [
        Number('333333333.33333329'),
        1e30,
        4.5,
        2e-3,
        1e-27,
        -0,
        5e-324,
        1.7976931348623157e308,
        2 ** 53,
        1e21,
        1e20,
        1e-7,
      ],
      '[333333333.3333333,1e+30,4.5,0.002,1e-27,0,5e-324,1.7976931348623157e+308,9007199254740992,1e+21,100000000000000000000,1e-7]',
    ],
    ['`__proto__` as a key like any other', JSON.parse('{"b":1,"__proto__":{"a":2}}'), '{"__proto__":{"a":2},"b":1}'],
    ['objects without a prototype', Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
    ['astral characters in values and keys', { '\u{1f600}': '\u{10ffff}' }, '{"\u{1f600}":"\u{10ffff}"}'],
  ])('%s', (_, value, text) => {
    expect(jcs(value)).toBe(text);
  });

  test('the same object twice is two equal parts', () => {
    const part = { a: [1] };
    expect(jcs([part, part])).toBe('[{"a":[1]},{"a":[1]}]');
  });

  test(`reads back as the same value, and the order of keys changes nothing (500 values, seed ${seed})`, () => {
    const random = seededRandom('jcs');
    for (let n = 0; n < 500; n++) {
      const value = randomJson(random);
      const text = jcs(value);
      expect(JSON.parse(text ?? '')).toEqual(value);
      expect(jcs(reversed(value))).toBe(text);
    }
  });
});

/** The same data with the keys of every object entered in the opposite order. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).reverse();
  return Object.fromEntries(entries.map(([key, member]) => [key, reversed(member)]));
}

describe('whatever is outside the data model is refused, at the top and inside', () => {
  const holed: unknown[] = [1, 2, 3];
  delete holed[1];
  const looped: Record<string, unknown> = {};
  looped.self = looped;
  const loopedArray: unknown[] = [];
  loopedArray.push(loopedArray);
  class Custom {
    a = 1;
  }
  const trap = () => {
    throw new Error('trap');
  };
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  const revokedArray = Proxy.revocable([], {});
  revokedArray.revoke();

  test.each<[string, unknown]>([
    ['undefined', undefined],
    ['a function', () => 1],
    ['a symbol', Symbol('a')],
    ['a bigint', 1n],
    ['NaN', Number.NaN],
    ['Infinity', Number.POSITIVE_INFINITY],
    ['minus Infinity', Number.NEGATIVE_INFINITY],
    ['a lone high surrogate', 'a\ud83d'],
    ['a lone low surrogate', '\ude00a'],
    ['surrogates the wrong way round', '\ude00\ud83d'],
    ['a lone surrogate in a key', { 'a\ud83d': 1 }],
    ['a hole', holed],
    ['an array that is all hole', new Array(1)],
    ['a huge array that is all hole', new Array(4294967295)],
    ['an array with a property', Object.assign([1], { extra: 1 })],
    ['an array whose property makes up for a hole', Object.assign([1], { length: 2, extra: 1 })],
    ['an array with a symbol', Object.assign([1], { [Symbol('a')]: 1 })],
    ['an array of another class', new (class extends Array {})()],
    ['a date', new Date(0)],
    ['a map', new Map([['a', 1]])],
    ['a set', new Set([1])],
    ['bytes', new Uint8Array(2)],
    ['a regular expression', /a/],
    ['an error', new Error('a')],
    ['an instance', new Custom()],
    ['a wrapped string', new String('a')],
    ['a wrapped number', new Number(1)],
    ['an object with a prototype of its own', Object.create({ a: 1 })],
    ['a symbol as key', { [Symbol('a')]: 1 }],
    ['a hidden property', Object.defineProperty({}, 'a', { value: 1, enumerable: false })],
    ['an object that holds itself', looped],
    ['an array that holds itself', loopedArray],
    ['a proxy that throws for its keys', new Proxy({}, { ownKeys: trap })],
    ['a proxy that throws for its prototype', new Proxy({}, { getPrototypeOf: trap })],
    ['a proxy that throws for a property', new Proxy({ a: 1 }, { getOwnPropertyDescriptor: trap })],
    ['a revoked proxy', revoked.proxy],
    ['a revoked proxy of an array', revokedArray.proxy],
  ])('%s', (_, value) => {
    expect(jcs(value)).toBeNull();
    expect(jcs([value])).toBeNull();
    expect(jcs({ a: { b: value } })).toBeNull();
  });

  test('no accessor and no toJSON is invoked', () => {
    let invoked = 0;
    const count = () => {
      invoked += 1;
      return 1;
    };
    const withGetter = Object.defineProperty({}, 'a', { get: count, enumerable: true });
    const array = Object.defineProperty([1], 0, { get: count, enumerable: true });
    expect([withGetter, array, { toJSON: count }].map(jcs)).toEqual([null, null, null]);
    expect(jcs({ toJSON: 'data' })).toBe('{"toJSON":"data"}');
    expect(invoked).toBe(0);
  });
});

describe('work is bounded', () => {
  test('64 levels are written and 65 are refused', () => {
    expect(JSON.parse(jcs(nested(64)) ?? '')).toEqual(nested(64));
    expect(jcs(nested(65))).toBeNull();
  });

  test('a depth that would end the stack is refused', () => {
    expect(jcs(nested(200_000))).toBeNull();
  });

  test('an object that doubles at every level is refused', () => {
    let value: unknown = 1;
    for (let level = 0; level < 60; level++) value = [value, value];
    expect(jcs(value)).toBeNull();
  });

  test('262,144 values are written and one more is refused, the list that holds them included', () => {
    expect(jcs(Array(262_143).fill(0))).toHaveLength(2 * 262_143 + 1);
    expect(jcs(Array(262_144).fill(0))).toBeNull();
  });

  test('as many values as a large body can hold are written', () => {
    expect(jcs(Array.from({ length: 100_000 }, (_, n) => n))).toHaveLength(588_891);
  });
});
