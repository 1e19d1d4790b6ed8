import fs, { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type ChainCopy, openChainCopy } from '../../../../src/collector/store/copy.ts';
import { openChainDatabase } from '../../../../src/collector/store/database.ts';
import { createChainFacts } from '../../../../src/collector/store/facts.ts';
import type { Sqlite } from '../../../../src/lib/sqlite-file.ts';
import { backUpDatabase } from '../../../../src/store/backup.ts';
import { putBlocks, putCoverage } from '../../../support/chain/chain-rows.ts';
import { until } from '../../../support/service/workers.ts';

const CHAIN = 5042;
const START = 1_795_003_200;
let folder: string;
let origin: Sqlite;
let copy: ChainCopy | null;
let warnings: string[];
const at = (name: string) => join(folder, name);
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'percall-copy-'));
  origin = openChainDatabase(at('origin.db'));
  copy = null;
  warnings = [];
});
afterEach(() => {
  copy?.close();
  origin.close();
  rmSync(folder, { recursive: true, force: true });
});

const open = (chainId = CHAIN, file = at('chain.db')) => {
  const log = { info: () => {}, warn: ({ err }: { err?: unknown }) => void warnings.push(String(err)) };
  copy = openChainCopy(log, { file, chainId, backfillHours: 1, lookMs: 10 });
  return copy;
};

/** Collects up to a block, as far as a copy shows it. */
function collect(from: number, to: number): void {
  putBlocks(
    origin,
    Array.from({ length: to - from + 1 }, (_, more) => ({ number: from + more, at: START + from + more })),
  );
  putCoverage(origin, 'full', [[1, to]]);
  const facts = createChainFacts(origin);
  facts.set('identity', JSON.stringify({ chainId: CHAIN, hash: null }));
  facts.storeHead({ number: to, hash: `0x${'ab'.repeat(32)}`, at: START + to, advancedMs: (START + to) * 1000 });
}

async function replace(): Promise<void> {
  await backUpDatabase(at('origin.db'), at('next.db'));
  renameSync(at('next.db'), at('chain.db'));
}

test('a copy is served with its collector’s state when it was made', async () => {
  collect(1, 20);
  await replace();
  const { reads, collector, feeSteps } = open();
  collect(21, 40);
  const { head, headCheckedMs, collected, backfill } = collector.status();
  expect([head?.number, collected, headCheckedMs]).toEqual([20, { number: 20, at: START + 20 }, (START + 20) * 1000]);
  expect([backfill.share, backfill.logsShare, reads.version()]).toEqual([1, 0, reads.version()]);
  expect(feeSteps(START, 3600).length).toBeGreaterThan(0);
});

test('a newer copy changes data, freshness and version together, also through a stored method', async () => {
  collect(1, 20);
  await replace();
  const { reads, collector } = open();
  const { version, probes } = reads;
  const before = version();
  collect(21, 40);
  origin.prepare("INSERT INTO probes (endpoint, at_ms, ok) VALUES ('node', 1, 1)").run();
  expect([version(), probes('node', 0)]).toEqual([before, []]);
  await replace();
  await until('the new copy is served', () => version() !== before);
  expect(collector.status()).toMatchObject({ collected: { number: 40 }, version: version() });
  expect(probes('node', 0)).toHaveLength(1);
  const after = version();
  await new Promise((next) => setTimeout(next, 50));
  expect(version()).toBe(after);
});

test('a copy that cannot be used is logged once, and the one before it is served on', async () => {
  collect(1, 20);
  await replace();
  const { reads, collector } = open();
  const before = reads.version();
  writeFileSync(at('broken'), 'not a database, whatever its name says'.repeat(100));
  renameSync(at('broken'), at('chain.db'));
  await until('the failure is logged', () => warnings.length > 0);
  await new Promise((next) => setTimeout(next, 50));
  expect(warnings).toEqual([expect.stringContaining('not a database')]);
  expect([reads.version(), collector.status().collected?.number]).toEqual([before, 20]);
  rmSync(at('chain.db'));
  await until('the missing file is logged too', () => warnings.length > 1);
  expect(reads.version()).toBe(before);
  collect(21, 22);
  await replace();
  await until('the next good one is served', () => collector.status().collected?.number === 22);
});

test('a file that is no copy of this chain is refused at start', async () => {
  expect(() => open()).toThrow('ENOENT');
  collect(1, 2);
  await replace();
  expect(() => open(1)).toThrow(`${at('chain.db')} is of chain ${CHAIN}, not 1`);
  const newer = openChainDatabase(at('newer.db'));
  newer.pragma('user_version = 999');
  newer.pragma('journal_mode = DELETE');
  newer.close();
  renameSync(at('newer.db'), at('chain.db'));
  expect(() => open()).toThrow('is of version 999');
  expect(() => open(CHAIN, at('origin.db'))).toThrow('is no copy');
});

/** Replaces the file this many times in all, each time after `openChainCopy` has opened it. `run` must be synchronous. */
async function replacedWhileOpened<T>(times: number, run: () => T): Promise<T> {
  for (let copied = 0; copied < times; copied++) await backUpDatabase(at('origin.db'), at(`${copied}.db`));
  const { statSync } = fs;
  let [looks, replaced] = [0, 0];
  // Each opening looks at the file before and after.
  const looking = (...given: Parameters<typeof statSync>) => {
    if (looks++ % 2 === 1 && replaced < times) renameSync(at(`${replaced++}.db`), at('chain.db'));
    return statSync(...given);
  };
  Object.assign(fs, { statSync: looking });
  syncBuiltinESMExports();
  try {
    return run();
  } finally {
    Object.assign(fs, { statSync });
    syncBuiltinESMExports();
  }
}

test('a file that is replaced during nine openings is served by the tenth', async () => {
  collect(1, 20);
  await replace();
  collect(21, 40);
  const { collector } = await replacedWhileOpened(9, open);
  expect(collector.status().collected?.number).toBe(40);
});

test('a file that is replaced each time is refused at start', async () => {
  collect(1, 20);
  await replace();
  await expect(replacedWhileOpened(10, open)).rejects.toThrow(`${at('chain.db')} is being replaced`);
});
