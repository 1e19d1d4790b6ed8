import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { PARTS, spreadFiles } from '../support/spread-files.ts';

const TESTS = join(import.meta.dirname, '..');
const filesOf = (folder: string, count: number) =>
  Array.from({ length: count }, (_, at) => ({ moduleId: join(TESTS, folder, `${at}.test.ts`) }));

test.each(PARTS)('"%s" is a folder of tests, with a part of the run', (folder, from, to) => {
  expect(existsSync(join(TESTS, folder))).toBe(true);
  expect(from).toBeGreaterThanOrEqual(0);
  expect(from).toBeLessThan(to);
  expect(to).toBeLessThanOrEqual(1);
});

test('files that wait begin between files that compute, and a folder keeps its order', () => {
  const [waiting, computing, quick] = [filesOf('fault', 6), filesOf('crash', 6), filesOf('unit/lib', 40)];
  const order = spreadFiles([...quick, ...waiting, ...computing]);
  expect(order).toHaveLength(52);
  for (const those of [waiting, computing, quick]) expect(order.filter((file) => those.includes(file))).toEqual(those);
  const places = waiting.map((file) => order.indexOf(file));
  for (const [at, place] of places.slice(1).entries()) expect(place - (places[at] ?? 0)).toBeGreaterThan(1);
  expect(order.indexOf(computing[5] as (typeof order)[number])).toBeLessThan(20);
  expect(quick).toContain(order.at(-1));
});
