import { expect, test } from 'vitest';
import { sourceSchema } from '../../../src/lib/service.ts';

test('a source names its origin and the time in whole seconds, and nothing else', () => {
  const source = { name: 'a', url: 'https://a.example', retrievedAt: 1 };
  expect(sourceSchema.parse(source)).toEqual(source);
  expect(sourceSchema.safeParse({ ...source, retrievedAt: 1.5 }).success).toBe(false);
  expect(sourceSchema.safeParse({ ...source, key: 'secret' }).success).toBe(false);
});
