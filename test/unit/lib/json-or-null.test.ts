import { expect, test } from 'vitest';
import { jsonOrNull } from '../../../src/lib/untrusted.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

test.each([
  ['an object', '{"a":[1,"ü"]}', { a: [1, 'ü'] }],
  ['a lone number', '7', 7],
  ['an empty body', '', null],
  ['a page', '<html></html>', null],
  ['a value that ends too early', '{"a":1', null],
])('parses %s, and returns null for what is no JSON', (_, text, expected) => {
  expect(jsonOrNull(bytes(text))).toEqual(expected);
});

test('reads only the part of a buffer that the view shows', () => {
  expect(jsonOrNull(bytes('xx{"a":1}xx').subarray(2, 9))).toEqual({ a: 1 });
});
