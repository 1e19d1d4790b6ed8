import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const SCRIPT = join(import.meta.dirname, '../../../scripts/signatures.ts');
const x = { name: 'x', version: '1.0.0' };

test.each([
  ['every signature is right', { invalid: [], missing: [] }, 0, 'every package has a signature'],
  ['one is wrong', { invalid: [x], missing: [] }, 1, 'wrong signature: x@1.0.0'],
  ['one is missing', { invalid: [], missing: [x] }, 1, 'no signature: x@1.0.0'],
  [
    'the registry cannot be asked',
    { error: { code: 'ENOTFOUND', summary: 'no address' } },
    0,
    'NOT checked: no address',
  ],
  ['npm says nothing', '', 0, 'NOT checked: npm gave no answer'],
])('when %s, the script says so', (_, answer, code, text) => {
  const folder = mkdtempSync(join(tmpdir(), 'percall-signatures-'));
  const words = answer === '' ? '' : JSON.stringify(answer);
  // Stands for npm, which would ask the network.
  writeFileSync(join(folder, 'npm'), `#!/bin/sh\ncat <<'END'\n${words}\nEND\n`, { mode: 0o755 });
  const env = { PATH: `${folder}:${process.env.PATH}` };
  const run = spawnSync(process.execPath, [SCRIPT], { encoding: 'utf8', env });
  expect([run.status, run.stdout + run.stderr]).toEqual([code, expect.stringContaining(text)]);
  rmSync(folder, { recursive: true });
});
