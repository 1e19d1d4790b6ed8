import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import { seed as runSeed, seededRandom, shuffled } from '../../support/random.ts';
import { type Played, playSeeds } from '../lane/play-seeds.ts';
import { PROMISES } from '../promises/promise.ts';
import { PLANTED } from './all.ts';
import { readFound } from './found.ts';
import { MENDED_PLANTS } from './mended.ts';
import { editsOf } from './plant.ts';

const MOST_MS = 600_000;
const PROCESSES = 2;
/** Faults of one process. Loading the service anew takes less than a new process, and what it has loaded stays in its memory. */
const FAULTS_AT_ONCE = 7;
const found = readFound();
const mended = found.filter(({ plant }) => MENDED_PLANTS.some(({ name }) => name === plant));
const ofEachPromise = [...new Map(mended.map((each) => [each.promise, each])).values()];
/**
 * The slow lane plays all of them again. A change plays three of those that the service once had, each for another promise that it broke. The run's seed
 * draws them.
 */
const played = process.env.SLOW ? found : shuffled(ofEachPromise, seededRandom('planted')).slice(0, 3);

test.each(PLANTED)('the planted fault "$name" still fits the source', (plant) => {
  const texts = new Map<string, string>();
  for (const { file, find, replace } of editsOf(plant)) {
    const text = texts.get(file) ?? readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8');
    expect(text.split(find), `${file} holds ${find} once`).toHaveLength(2);
    texts.set(
      file,
      text.replace(find, () => replace),
    );
  }
});

test('each planted fault was found within 1,000 seeds by a promise that it breaks, and none is left out', () => {
  expect(found.map(({ plant }) => plant)).toEqual(PLANTED.map(({ name }) => name));
  for (const { plant, promise, seed } of found) {
    expect(PLANTED.find(({ name }) => name === plant)?.breaks).toContain(promise);
    expect(seed).toBeLessThanOrEqual(1000);
  }
});

test('every promise is broken by a planted fault, so each judge is shown to notice one', () => {
  expect(PROMISES.filter((name) => !found.some(({ promise }) => promise === name))).toEqual([]);
});

describe(`a planted fault${process.env.SLOW ? '' : `, drawn by SEED=${runSeed}`}`, () => {
  const withFault = new Map<string, Played | undefined>();
  const without = new Map<number, Played>();
  beforeAll(async () => {
    const waiting = [...played];
    const work = async () => {
      for (let rows = waiting.splice(0, FAULTS_AT_ONCE); rows.length > 0; rows = waiting.splice(0, FAULTS_AT_ONCE)) {
        const [seeds, plant] = [rows.map(({ seed }) => seed), rows.map((row) => row.plant)];
        const reported = await playSeeds({ seeds, plant });
        for (const [at, name] of plant.entries()) withFault.set(name, reported[at]);
      }
    };
    const clean = async () => {
      const seeds = [...new Set(played.map(({ seed }) => seed))];
      for (const reported of await playSeeds({ seeds })) without.set(Number(reported.seed), reported);
      await work();
    };
    const first = process.env.SLOW ? clean : work;
    await Promise.all([first(), ...Array.from({ length: PROCESSES - 1 }, work)]);
  }, MOST_MS);

  test.each(played)(
    `$plant: breaks "$promise" in seed $seed${process.env.SLOW ? ', which is clean without it' : ''}`,
    ({ plant, promise, seed }) => {
      expect(withFault.get(plant)?.breach?.promise).toBe(promise);
      if (process.env.SLOW) expect(without.get(seed)).toMatchObject({ breach: null });
    },
  );
});
