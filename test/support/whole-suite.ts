import { afterAll, TestRunner } from 'vitest';

/**
 * Judges the tests of a `describe` together, after the last one, in whichever order they ran. It is called at the end of the `describe`. A run of a
 * part of the tests is not judged. A test that says `skip` does not make the run a part.
 */
export function afterWholeSuite(judge: () => void): void {
  const tests = TestRunner.getCurrentSuite().tasks.filter(({ mode }) => mode === 'run');
  if (tests.length === 0) throw new Error('no test comes before this');
  afterAll(() => {
    // The runner lets the tests skip that were not selected.
    if (tests.every(({ mode }) => mode !== 'skip')) judge();
  });
}
