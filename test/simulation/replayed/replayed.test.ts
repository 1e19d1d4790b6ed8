import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Played, playSeeds, tellBreach } from '../lane/play-seeds.ts';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const files = readdirSync(FOLDER).filter((name) => name.endsWith('.json'));

describe('the shortened moves of a seed that once broke a promise', () => {
  let reported: Played[];
  beforeAll(async () => {
    reported = await playSeeds({ replay: files.map((name) => `${FOLDER}${name}`) });
  }, 120_000);

  test('are those that were kept', () => {
    expect(files).toEqual([
      'cancelled-after-a-refusal.json',
      'deposit-of-another-client.json',
      'refund-that-ends-during-another.json',
    ]);
    expect(reported).toHaveLength(files.length);
  });

  test.each(files.map((name, at) => [name, at] as const))('break none any more: %s', (_name, at) => {
    const [one] = reported.slice(at, at + 1);
    expect(one && tellBreach(one)).toBe('');
    expect(one?.played).toBeGreaterThan(0);
  });
});
