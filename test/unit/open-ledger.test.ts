import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Part, WHOLE } from '../../src/cluster/part.ts';
import { loadConfig } from '../../src/config.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';
import { openLedger } from '../../src/wiring/open-ledger.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'percall-open-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

async function openAs(part: Part): Promise<string> {
  const config = loadConfig({
    ...{ NETWORK: 'arc', SELLER_ADDRESS: `0x${'5e'.repeat(20)}`, RELAYER_PRIVATE_KEY: `0x${'1'.repeat(64)}` },
    DATA_DIR: folder,
  });
  const ledger = await openLedger(config, part, systemClock, createLogger('silent'));
  await ledger.close();
  return join(folder, 'limits.db');
}

// Two API processes that make it at once get in each other's way, and the service does not start.
test('the primary creates the shared windows for the processes that start after it', async () => {
  const db = new Database(await openAs({ kind: 'primary', living: () => [] }), { readonly: true, fileMustExist: true });
  expect(db.pragma('journal_mode', { simple: true })).toBe('wal');
  expect(db.prepare('SELECT count(*) FROM minute_windows').pluck().get()).toBe(0);
  db.close();
});

test('a single process shares no windows and creates no file for them', async () => {
  expect(existsSync(await openAs(WHOLE))).toBe(false);
});
