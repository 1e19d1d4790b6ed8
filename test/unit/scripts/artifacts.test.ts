import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { compileContracts } from '../../../scripts/contracts/compile.ts';
import { ARTIFACTS_FILE } from '../../../src/embedded/contracts/artifacts.ts';

test('the committed artifacts equal the compiled sources', () => {
  expect(readFileSync(ARTIFACTS_FILE, 'utf8') === compileContracts(), 'run npm run contracts').toBe(true);
});
