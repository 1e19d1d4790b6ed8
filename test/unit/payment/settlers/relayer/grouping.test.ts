import { describe, expect, test } from 'vitest';
import { cutGroups, splitGroup } from '../../../../../src/payment/relayer/sending.ts';
import { seed, seededRandom } from '../../../../support/random.ts';

const MANY = Number.MAX_SAFE_INTEGER;
const jobs = (...rooms: number[]) => rooms.map((maxGroup, name) => ({ maxGroup, name }));
const sizes = (groups: readonly unknown[][]) => groups.map(({ length }) => length);
const cut = (most: number, ...rooms: number[]) =>
  cutGroups(jobs(...rooms), most, () => 1).map((group) => group.map(({ name }) => name));

describe('groups', () => {
  test('hold as many as may go together, in the order in which they came', () => {
    expect(cut(10, MANY, MANY, MANY)).toEqual([[0, 1, 2]]);
    expect(cut(2, MANY, MANY, MANY)).toEqual([[0, 1], [2]]);
    expect(cut(10)).toEqual([]);
  });

  test('are not split by jobs that must go alone', () => {
    expect(cut(10, 1, MANY, 1, MANY, 1, MANY)).toEqual([[1, 3, 5], [0], [2], [4]]);
  });

  test(`never hold a job with more others than it may have, and lose no job (seed ${seed})`, () => {
    const random = seededRandom('grouping');
    for (let round = 0; round < 300; round++) {
      const most = 1 + Math.floor(random() * 12);
      const all = jobs(
        ...Array.from({ length: Math.floor(random() * 40) }, () =>
          random() < 0.5 ? MANY : 1 + Math.floor(random() * 9),
        ),
      );
      const groups = cutGroups(all, most, () => 1);
      expect(
        groups
          .flat()
          .map(({ name }) => name)
          .sort((a, b) => a - b),
      ).toEqual(all.map(({ name }) => name));
      for (const group of groups) {
        expect(group.length).toBeLessThanOrEqual(most);
        for (const { maxGroup } of group) expect(group.length).toBeLessThanOrEqual(maxGroup);
      }
    }
  });

  test('never exceed the limit of any of their jobs', () => {
    expect(cut(10, 3, MANY, 2, 3)).toEqual([[1, 0, 3], [2]]);
    expect(cut(10, 2, 2, 2)).toEqual([[0, 1], [2]]);
    expect(cut(1, MANY, MANY)).toEqual([[0], [1]]);
  });

  test('that settled nothing have half as many jobs next time, rounded up, and at least one', () => {
    const split = (count: number) => {
      const group = jobs(...Array(count).fill(MANY));
      splitGroup(group);
      return group.map(({ maxGroup }) => maxGroup);
    };
    expect([split(5), split(2), split(1), split(0)]).toEqual([[3, 3, 3, 3, 3], [1, 1], [1], []]);
  });

  test('that settle nothing are split until each job is alone', () => {
    let left: { maxGroup: number; name: number }[][] = [jobs(...Array(100).fill(MANY))];
    const rounds: number[][] = [];
    while (left.some((group) => group.length > 1)) {
      for (const group of left) splitGroup(group);
      left = cutGroups(left.flat(), 1000, () => 1);
      rounds.push(sizes(left));
    }
    expect(rounds[0]).toEqual([50, 50]);
    expect(rounds).toHaveLength(7);
    expect(rounds.at(-1)).toEqual(Array(100).fill(1));
  });
});

test('jobs that weigh more fill a group sooner, and one that weighs more than a group may hold goes alone', () => {
  const weights = [1, 3, 1, 9, 2, 2];
  const weighed = weights.map((weight) => ({ maxGroup: MANY, weight }));
  const groups = cutGroups(weighed, 5, ({ weight }) => weight);
  expect(groups.map((group) => group.map(({ weight }) => weight))).toEqual([[1, 3, 1], [9], [2, 2]]);
});
