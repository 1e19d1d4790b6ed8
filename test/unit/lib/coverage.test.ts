import { describe, expect, test } from 'vitest';
import { type Coverage, cover, missingFrom, shareOf, sizeOf, uncover } from '../../../src/lib/coverage.ts';
import { seed, seededRandom } from '../../support/random.ts';

const span = (from: number, to: number) => ({ from, to });

describe('coverage', () => {
  test('neighbours and overlaps become one span', () => {
    expect(cover([span(1, 3), span(8, 9)], span(4, 5))).toEqual([span(1, 5), span(8, 9)]);
    expect(cover([span(1, 3), span(8, 9)], span(2, 8))).toEqual([span(1, 9)]);
    expect(cover([span(8, 9)], span(1, 2))).toEqual([span(1, 2), span(8, 9)]);
  });

  test('a span taken out of the middle leaves both sides', () => {
    expect(uncover([span(1, 9)], span(4, 5))).toEqual([span(1, 3), span(6, 9)]);
    expect(uncover([span(1, 9)], span(0, 10))).toEqual([]);
    expect(uncover([span(1, 9)], span(9, 20))).toEqual([span(1, 8)]);
    expect(uncover([span(1, 9)], span(10, 20))).toEqual([span(1, 9)]);
  });

  test('the missing part is the rest of the window; nothing of an empty window is missing', () => {
    expect(missingFrom([span(3, 4), span(8, 20)], span(1, 10))).toEqual([span(1, 2), span(5, 7)]);
    expect(missingFrom([], span(5, 4))).toEqual([]);
    expect(missingFrom([span(1, 10)], span(2, 9))).toEqual([]);
  });

  test('the share of a window is never rounded up to 1, and the caller chooses that of an empty window', () => {
    const all = span(1, 30_000);
    expect([shareOf([all], all, 0), shareOf([], all, 1), shareOf([span(15_001, 40_000)], all, 1)]).toEqual([1, 0, 0.5]);
    expect(shareOf([span(1, 29_999)], all, 0)).toBe(0.9999);
    expect([shareOf([all], span(5, 4), 0), shareOf([], span(5, 4), 1)]).toEqual([0, 1]);
  });

  test(`agrees with plain sets over random steps (SEED=${seed})`, () => {
    const random = seededRandom('coverage');
    let coverage: Coverage = [];
    const plain = new Set<number>();
    for (let step = 0; step < 2000; step += 1) {
      const from = Math.floor(random() * 100);
      const part = span(from, from + Math.floor(random() * 12));
      const adds = random() < 0.5;
      coverage = adds ? cover(coverage, part) : uncover(coverage, part);
      for (let at = part.from; at <= part.to; at += 1) adds ? plain.add(at) : plain.delete(at);
      const held = coverage.flatMap(({ from: low, to }) => Array.from({ length: to - low + 1 }, (_, at) => low + at));
      expect(held).toEqual([...plain].sort((a, b) => a - b));
      expect(sizeOf(coverage)).toBe(plain.size);
      expect(coverage.every((known, at) => at === 0 || coverage[at - 1]!.to + 1 < known.from)).toBe(true);
    }
  });
});
