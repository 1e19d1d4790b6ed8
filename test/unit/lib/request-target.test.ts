import { expect, test } from 'vitest';
import { pathAndQuery } from '../../../src/lib/url.ts';

test.each([
  ['/v1/a', '/v1/a'],
  ['/v1/a?x=%2f&x=&', '/v1/a?x=%2f&x=&'],
  ['/v1/a?', '/v1/a?'],
  ['//evil.example/v1/a', '//evil.example/v1/a'],
  ['http://evil.example/v1/a?q=1', '/v1/a?q=1'],
  ['http://user@evil.example:8080/', '/'],
])('%s is asked as %s, byte for byte', (target, expected) => {
  expect(pathAndQuery(target)).toBe(expected);
});

test.each(['http://evil.example', '*', ''])('%s has no path', (target) => {
  expect(pathAndQuery(target)).toBeNull();
});
