import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openSharedWindows } from '../../../../src/store/sqlite/shared-windows.ts';

let folder: string;
let file: string;
let now = 0;
const clock = { nowMs: () => now, sleep: async () => {} };
const opened: { close(): void }[] = [];
const open = (salt = 'salt') => {
  const windows = openSharedWindows(file, salt, clock);
  opened.push(windows);
  return windows;
};
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'percall-windows-'));
  file = join(folder, 'limits.db');
  now = 1_800_000_000_000;
});
afterEach(() => {
  for (const windows of opened.splice(0)) windows.close();
  rmSync(folder, { recursive: true, force: true });
});

test('two processes count one client together, for a minute from the first count', () => {
  const [here, there] = [open().open('calls'), open().open('calls')];
  expect(here.count('a')).toEqual({ count: 1, resetSeconds: 60 });
  now += 20_500;
  expect(there.count('a')).toEqual({ count: 2, resetSeconds: 40 });
  expect(here.count('a').count).toBe(3);
  now += 39_500;
  expect(there.count('a')).toEqual({ count: 1, resetSeconds: 60 });
  expect(here.count('a').count).toBe(2);
});

test('clients are counted separately, and for each name', () => {
  const windows = open();
  const [calls, invoices] = [windows.open('calls'), windows.open('invoices')];
  expect([calls.count('a'), calls.count('b'), invoices.count('a')].map(({ count }) => count)).toEqual([1, 1, 1]);
  expect(calls.count('a').count).toBe(2);
});

test('no file contains an address', () => {
  const calls = open().open('calls');
  calls.count('203.0.113.77');
  const bytes = Buffer.concat(readdirSync(folder).map((name) => readFileSync(join(folder, name))));
  expect(bytes.includes('calls')).toBe(true);
  expect(bytes.includes('203.0.113.77')).toBe(false);
});

test('ended windows are deleted, and at most ten thousand clients are kept', () => {
  const calls = open().open('calls');
  for (let at = 0; at < 1500; at++) calls.count(`old ${at}`);
  now += 60_000;
  for (let at = 0; at < 501; at++) calls.count(`new ${at}`);
  const db = new Database(file, { readonly: true });
  expect(db.prepare('SELECT count(*) FROM minute_windows').pluck().get()).toBe(501);
  db.close();
});

test('while the file is locked a process counts by itself', () => {
  const calls = open().open('calls');
  calls.count('a');
  const other = new Database(file);
  other.exec('BEGIN IMMEDIATE');
  expect(calls.count('a').count).toBe(1);
  expect(calls.count('a').count).toBe(2);
  calls.takeBack('a');
  expect(calls.count('a').count).toBe(2);
  other.exec('COMMIT');
  other.close();
  expect(calls.count('a').count).toBe(2);
});
