import { mkdtempSync, rmSync } from 'node:fs';
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

test('one process holds a data directory, and the next when it has let go', () => {
  const first = holdLedger(file);
  expect(() => holdLedger(file)).toThrow(/another process serves the ledger/);
  first.release();
  holdLedger(file).release();
});

test('any number share it with the one that holds it, and nobody gets it after that one before they have left', () => {
  const first = holdLedger(file);
  const shared = [joinLedger(file), joinLedger(file)];
  first.release();
  expect(() => holdLedger(file, 20)).toThrow(/API processes of a service that has ended/);
  shared[0]?.release();
  expect(() => holdLedger(file, 20)).toThrow(/API processes of a service that has ended/);
  shared[1]?.release();
  // What was refused left nothing locked behind.
  holdLedger(file, 20).release();
});
