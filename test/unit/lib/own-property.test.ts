import { describe, expect, test } from 'vitest';
import { own, ownKeys, UNREADABLE } from '../../../src/lib/untrusted.ts';

const hostile = new Proxy(
  {},
  {
    getOwnPropertyDescriptor() {
      throw new Error('trap');
    },
    ownKeys() {
      throw new Error('trap');
    },
  },
);

describe('own', () => {
  test('reads the object’s own properties, `__proto__` and `constructor` too', () => {
    const value = JSON.parse('{"a":1,"__proto__":2,"constructor":3}');
    expect(['a', '__proto__', 'constructor'].map((key) => own(value, key))).toEqual([1, 2, 3]);
  });

  test.each([
    ['an inherited property', Object.create({ a: 1 })],
    ['a property of Object.prototype', {}],
    ['a string', 'a'],
    ['null', null],
    ['undefined', undefined],
    ['a number', 5],
  ])('reads nothing out of %s', (_, value) => {
    expect(['a', 'length', 'constructor', '__proto__', 'toString'].map((key) => own(value, key))).toEqual(
      Array(5).fill(undefined),
    );
  });

  test('runs no accessor and survives a proxy’s traps', () => {
    let invoked = 0;
    const value = {
      get a() {
        invoked += 1;
        return 1;
      },
    };
    expect(own(value, 'a')).toBe(UNREADABLE);
    expect(own(hostile, 'a')).toBe(UNREADABLE);
    expect(invoked).toBe(0);
  });
});

describe('ownKeys', () => {
  test('returns every own key, and null for a non-object and for a proxy that throws', () => {
    expect(ownKeys(JSON.parse('{"b":1,"__proto__":2}'))).toEqual(['b', '__proto__']);
    expect([null, undefined, 5, 'text', hostile].map(ownKeys)).toEqual([null, null, null, null, null]);
  });
});
