import { expect, test } from 'vitest';
import { followReference } from '../../../src/lib/untrusted.ts';

const document = {
  a: { 'b/c': { '~d': 1 } },
  one: { $ref: '#/two' },
  two: { $ref: '#/a' },
  self: { $ref: '#/self' },
};

test.each([
  ['a value that is no reference', { x: 1 }, { x: 1 }],
  ['a reference with escapes', { $ref: '#/a/b~1c/~0d' }, 1],
  ['a reference to a reference', { $ref: '#/one' }, document.a],
  ['a reference to itself', { $ref: '#/self' }, undefined],
  ['a reference to another document', { $ref: 'https://a.example/#/a' }, undefined],
  ['a reference to nothing', { $ref: '#/none/of/it' }, undefined],
  ['a reference of a million steps', { $ref: `#/${'a/'.repeat(1_000_000)}` }, undefined],
  ['a reference to a prototype', { $ref: '#/constructor' }, undefined],
])('%s is followed within the document alone', (_title, value, expected) => {
  expect(followReference(document, value)).toEqual(expected);
});
