import { expect, test } from 'vitest';
import { clipText } from '../../../src/lib/untrusted.ts';

test.each([
  ['', 3, { text: '', characters: 0, truncated: false }],
  ['abc', 3, { text: 'abc', characters: 3, truncated: false }],
  ['abcd', 3, { text: 'abc', characters: 3, truncated: true }],
  ['a😀b', 2, { text: 'a😀', characters: 2, truncated: true }],
  ['😀😀', 1, { text: '😀', characters: 1, truncated: true }],
  ['😀😀', 2, { text: '😀😀', characters: 2, truncated: false }],
  // Half a character, as careless sources send: it is replaced, because no JSON reader need take it.
  ['a\ud83db', 3, { text: 'a\ufffdb', characters: 3, truncated: false }],
])('%j cut at %d', (text, max, clipped) => {
  expect(clipText(text, max)).toEqual(clipped);
});
