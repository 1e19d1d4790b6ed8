import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ARTIFACTS_FILE } from '../../../dev/contracts.ts';
import { compileContracts, DIGEST_FILE, digestOf } from '../../../scripts/contracts/compile.ts';

const committed = readFileSync(ARTIFACTS_FILE, 'utf8');

test('the committed artifacts are of these sources, these settings and this compiler, and nobody has edited them', () => {
  expect(digestOf(committed), 'run npm run contracts').toBe(readFileSync(DIGEST_FILE, 'utf8'));
  expect(digestOf(`${committed} `)).not.toBe(digestOf(committed));
});

test.runIf(process.env.SLOW)('the committed artifacts equal the compiled sources', async () => {
  expect(committed === (await compileContracts()), 'run npm run contracts').toBe(true);
});
