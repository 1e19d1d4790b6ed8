import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openChainDatabase, openChainReader } from '../../../../src/store/chain/database.ts';
import { createChainFacts } from '../../../../src/store/chain/facts.ts';
import { createChainReads } from '../../../../src/store/chain/reads.ts';
import type { Sqlite } from '../../../../src/store/sqlite/database.ts';

let folder: string;
let collecting: Sqlite;
let reading: Sqlite;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'percall-reader-'));
  collecting = openChainDatabase(join(folder, 'chain.db'));
  reading = openChainReader(join(folder, 'chain.db'));
});
afterEach(() => {
  reading.close();
  collecting.close();
  rmSync(folder, { recursive: true, force: true });
});

test('what another connection writes changes the version, and nothing else does', () => {
  const reads = createChainReads(reading, 'elsewhere');
  const before = reads.version();
  expect(reads.version()).toBe(before);
  createChainFacts(collecting).set('logsKey', 'a');
  const after = reads.version();
  expect(after).not.toBe(before);
  expect([reads.version(), createChainFacts(reading).get('logsKey')]).toEqual([after, 'a']);
  // The count of a connection's own changes, which the collector's own reads go by, knows nothing of it.
  const own = createChainReads(reading);
  const unchanged = own.version();
  createChainFacts(collecting).set('logsKey', 'b');
  expect(own.version()).toBe(unchanged);
});

test('nothing can be written beside the collector', () => {
  expect(() => createChainFacts(reading).set('logsKey', 'a')).toThrow(/readonly/);
});
