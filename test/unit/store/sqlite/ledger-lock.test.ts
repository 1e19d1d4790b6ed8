import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { holdLedger, joinLedger } from '../../../../src/store/sqlite/ledger-lock.ts';

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

test('any number of API processes share it, and the next start gets it only after all of them have left', () => {
  const first = holdLedger(file);
  const shared = [joinLedger(file), joinLedger(file)];
  first.release();
  expect(() => holdLedger(file, 20)).toThrow(/API processes of a service that has ended/);
  shared[0]?.release();
  expect(() => holdLedger(file, 20)).toThrow(/API processes of a service that has ended/);
  shared[1]?.release();
  // A refused attempt leaves no lock behind.
  holdLedger(file, 20).release();
});

test('a lock file that cannot be read is not taken for another process', () => {
  writeFileSync(file, 'no database'.repeat(100));
  expect(() => holdLedger(file)).toThrow('file is not a database');
});
