import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import { blocksOf, inRepository, readText } from '../../support/documents.ts';
import { pythonWith } from '../../support/python.ts';

// The README's Python needs packages of x402, so it is only read. The file in docs/examples also runs, in the slow lane
// (test/conformance/clients/python-buyer.test.ts).

const python = pythonWith('ast');
const PARSE = 'import ast, sys; ast.parse(sys.stdin.read())';

describe.skipIf(python === null)(`Python${python === null ? ' (skipped: it is not installed)' : ''}`, () => {
  const complaint = (code: string) => spawnSync(String(python), ['-c', PARSE], { input: code }).stderr.toString();

  test('can read the README’s buyer', () => {
    const blocks = blocksOf(readText('README.md'), 'python');
    expect(blocks.map(complaint)).toEqual(['']);
    expect(complaint('print(')).toContain('SyntaxError');
  });

  test('can read every example', () => {
    const files = inRepository('docs/examples/*.py');
    expect(files).toContain('docs/examples/buy.py');
    for (const file of files) expect([file, complaint(readText(file))]).toEqual([file, '']);
  });
});

test('the ceilings of both buyers are the price of the dearest route', () => {
  const dearest = catalogue.reduce((most, { price }) => (price && price.units > most ? price.units : most), 0n);
  expect(blocksOf(readText('README.md'), 'python').join()).toContain(`int(offer.amount) <= ${dearest}]`);
  expect(readText('docs/examples/buy.py')).toContain(`'MAX_USDC', '${Number(dearest) / 1e6}'`);
});

test('the buyer without a library of x402 stays short', () => {
  expect(readText('docs/examples/buy.py').trimEnd().split('\n').length).toBeLessThanOrEqual(60);
});
