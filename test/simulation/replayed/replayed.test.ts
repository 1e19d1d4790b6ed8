import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { playSeeds, tellBreach } from '../lane/play-seeds.ts';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const files = readdirSync(FOLDER).filter((name) => name.endsWith('.json'));

describe('the shortened moves of a seed that once broke a promise', () => {
  test('are those that were kept', () =>
    expect(files).toEqual([
      'cancelled-after-a-refusal.json',
      'deposit-of-another-client.json',
      'refund-that-ends-during-another.json',
    ]));

  test.each(files)(
    'break none any more: %s',
    async (name) => {
      const reported = await playSeeds({ replay: `${FOLDER}${name}` });
      expect(reported).toHaveLength(1);
      expect(reported.map(tellBreach)).toEqual(['']);
      expect(reported[0]?.played).toBeGreaterThan(0);
    },
    120_000,
  );
});
