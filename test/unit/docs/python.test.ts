import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import { inRepository, readText } from '../../support/documents.ts';
import { pythonWith } from '../../support/python.ts';

// buy-x402.py needs packages that are neither on npm nor in Debian, so it is only read. buy.py also runs, in the slow
// lane (test/conformance/clients/python-buyer.test.ts).

const python = pythonWith('ast');
const PARSE = 'import ast, sys; ast.parse(sys.stdin.read())';

describe.skipIf(python === null)(`Python${python === null ? ' (skipped: it is not installed)' : ''}`, () => {
  const complaint = (code: string) => spawnSync(String(python), ['-c', PARSE], { input: code }).stderr.toString();

  test('can read every example', () => {
    const files = inRepository('docs/examples/*.py');
    expect(files.sort()).toEqual(['docs/examples/buy-x402.py', 'docs/examples/buy.py']);
    expect(complaint('print(')).toContain('SyntaxError');
    for (const file of files) expect([file, complaint(readText(file))]).toEqual([file, '']);
  });
});

test('the ceilings of both buyers are the price of the dearest route', () => {
  const dearest = catalogue.reduce((most, { price }) => (price && price.units > most ? price.units : most), 0n);
  expect(readText('docs/examples/buy-x402.py')).toContain(`int(offer.amount) <= ${dearest}]`);
  expect(readText('docs/examples/buy.py')).toContain(`'MAX_USDC', '${Number(dearest) / 1e6}'`);
});

test('the buyer without a library of x402 stays short', () => {
  expect(readText('docs/examples/buy.py').trimEnd().split('\n').length).toBeLessThanOrEqual(60);
});
