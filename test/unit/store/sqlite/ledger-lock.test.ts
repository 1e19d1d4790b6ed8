import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { holdLedger } from '../../../../src/store/sqlite/ledger-lock.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'percall-lock-'));
  file = join(folder, 'ledger.lock');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('one process locks a data directory, and the next one after its release', () => {
  const first = holdLedger(file);
  expect(() => holdLedger(file)).toThrow(/another process serves the ledger/);
  first.release();
  holdLedger(file).release();
});

test('a lock file that cannot be read is not taken for another process', () => {
  writeFileSync(file, 'no database'.repeat(100));
  expect(() => holdLedger(file)).toThrow('file is not a database');
});
