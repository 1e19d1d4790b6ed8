import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { inRepository, readText } from '../../support/documents.ts';
import { pythonWith } from '../../support/python.ts';

// What runs of it is run in the slow lane (test/conformance/clients/python-buyer.test.ts).

const python = pythonWith('ast');
const PARSE = 'import ast, sys; ast.parse(sys.stdin.read())';

describe.skipIf(python === null)(`Python${python === null ? ' (skipped: it is not installed)' : ''}`, () => {
  const complaint = (code: string) => spawnSync(String(python), ['-c', PARSE], { input: code }).stderr.toString();

  test('can read every example', () => {
    expect(complaint('print(')).toContain('SyntaxError');
    const files = inRepository('docs/examples/*.py');
    expect(files).toContain('docs/examples/buy.py');
    for (const file of files) expect([file, complaint(readText(file))]).toEqual([file, '']);
  });
});

test('the buyer without a library of x402 stays short', () => {
  expect(readText('docs/examples/buy.py').trimEnd().split('\n').length).toBeLessThanOrEqual(60);
});
