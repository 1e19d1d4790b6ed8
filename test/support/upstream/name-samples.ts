import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect } from 'vitest';
import { afterWholeSuite } from '../whole-suite.ts';
import { type NamesWorld, startNames } from './names.ts';

const SAMPLES = join(import.meta.dirname, '../../../../shared/samples');

/** The tools of a suite over recorded answers. */
export interface Samples {
  readonly world: NamesWorld;
  /** The bytes, read in place. A file that the suite has read counts as replayed. */
  bytes(name: string): Buffer;
  parsed<T>(name: string): T;
  /** Answers every request below the path with a recording. */
  serve(path: string, name: string, type?: string, status?: number): void;
}

/** Whole Unix seconds of an ISO time. */
export const seconds = (iso: string) => Math.floor(Date.parse(iso) / 1000);

/**
 * A suite that replays recorded answers byte for byte over HTTP through the real client. It fails for a recording in the folders that no test
 * replays. A recording that no sold route asks for is named in `notAskedFor`.
 */
export function describeSamples(
  title: string,
  { folders, notAskedFor }: { folders: readonly string[]; notAskedFor: readonly string[] },
  suite: (samples: Samples) => void,
): void {
  const taken = new Set<string>();
  let world: NamesWorld;
  const bytes = (name: string) => {
    taken.add(name);
    return readFileSync(join(SAMPLES, name));
  };
  const samples: Samples = {
    get world() {
      return world;
    },
    bytes,
    parsed: (name) => JSON.parse(bytes(name).toString('utf8')),
    serve: (path, name, type = 'application/json', status = 200) => {
      world.answers.set(path, { status, type, body: bytes(name) });
    },
  };
  describe.skipIf(!existsSync(SAMPLES))(`${title} (skipped where ../shared is absent)`, () => {
    beforeEach(async () => {
      world = await startNames();
    });
    afterEach(() => world.stop());
    suite(samples);
    afterWholeSuite(() => {
      const all = folders.flatMap((folder) => readdirSync(join(SAMPLES, folder)).map((name) => `${folder}/${name}`));
      expect(all.length).toBeGreaterThan(0);
      const left = all.filter((name) => !taken.has(name)).sort();
      expect(left, 'every recorded answer has a test').toEqual([...notAskedFor].sort());
    });
  });
}
