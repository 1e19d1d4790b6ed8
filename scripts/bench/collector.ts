import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createChainClient } from '../../src/chain/rpc/client.ts';
import { createCollector } from '../../src/collector/collector.ts';
import { openChainDatabase } from '../../src/collector/store/database.ts';
import { systemClock } from '../../src/lib/clock.ts';
import type { Sqlite } from '../../src/lib/sqlite-file.ts';
import { createSwapScanner } from '../../test/support/chain/arc-simulator/swap-scanner.ts';
import { startSubject } from './lib.ts';
import { reportServiceMemory } from './service-memory.ts';

/** One day of half-second blocks. */
const DAY_BLOCKS = 172_800;
/**
 * Arc's rates where they are known, otherwise the upper end of an estimate: `facts` gives 100 to 500 deploys an hour, and a EURC swap every few
 * blocks.
 */
const ROWS_A_DAY: Record<string, number> = { blocks: DAY_BLOCKS, deploys: 12_000, trades: DAY_BLOCKS / 3 };
const PORT = 4197;

/**
 * Collects a simulated day of blocks, ten transactions each, at full speed: without a request budget, from a node that answers at once.
 * Prints the rate, the bytes on disk per row and per day at Arc's rates, and the memory of this process at the end.
 */
export async function benchCollector(): Promise<void> {
  const blocks = Number(process.env.BENCH_BLOCKS ?? DAY_BLOCKS);
  const env = { HEAD: String(blocks), TRANSACTIONS: '10' };
  const node = await startSubject(join(import.meta.dirname, 'servers/arc-node.ts'), PORT, '/', env);
  const directory = mkdtempSync(join(tmpdir(), 'bench-collector-'));
  const db = openChainDatabase(join(directory, 'chain.db'));
  const common = { clock: systemClock, log: { info: () => undefined, warn: console.warn, error: console.error } };
  const chain = createChainClient(common, { rpcUrls: [node.origin], chainId: 5042, timeoutMs: 20_000 });
  const collector = createCollector(common, chain, db, {
    scanners: [createSwapScanner()],
    limits: { requestsPerSecond: 100_000, backfillHours: 48, pollIntervalMs: 200 },
  });
  const startMs = performance.now();
  let feesMs = 0;
  let peak = 0;
  collector.start();
  for (;;) {
    await delay(100);
    const { backfill } = collector.status();
    peak = Math.max(peak, process.memoryUsage.rss());
    if (feesMs === 0 && backfill.feesShare === 1) feesMs = performance.now();
    if (backfill.share === 1) break;
  }
  const seconds = (performance.now() - feesMs) / 1000;
  console.log(`collector: ${blocks} blocks of 10 transactions`);
  console.log(`  base fees of all of them after      ${((feesMs - startMs) / 1000).toFixed(1)} s`);
  console.log(`  whole blocks                        ${Math.round(blocks / seconds)} blocks/s (goal 500)`);
  reportSizes(db);
  await reportMemory(peak);
  await collector.stop();
  db.close();
  await chain.close();
  await reportServiceMemory(node.origin);
  await node.stop();
  rmSync(directory, { recursive: true });
}

/** Prints the bytes of each table with its indexes, and of a day at Arc's rates. */
function reportSizes(db: Sqlite): void {
  db.pragma('wal_checkpoint(TRUNCATE)');
  const sizes = db
    .prepare(
      'SELECT m.tbl_name AS name, sum(s.pgsize) AS bytes FROM dbstat s JOIN sqlite_schema m ON m.name = s.name GROUP BY 1',
    )
    .all() as { name: string; bytes: number }[];
  let day = 0;
  for (const [table, rowsADay] of Object.entries(ROWS_A_DAY)) {
    const bytes = sizes.find(({ name }) => name === table)?.bytes ?? 0;
    const rows = db.prepare(`SELECT count(*) FROM ${table}`).pluck().get() as number;
    day += (bytes / rows) * rowsADay;
    console.log(`  ${`a row of ${table}`.padEnd(36)}${Math.round(bytes / rows)} bytes (${rows} rows)`);
  }
  console.log(`  file                                ${Math.round(statSync(db.name).size / 1e6)} MB as collected`);
  console.log(`  a day at Arc's rates                ${Math.round(day / 1e6)} MB`);
}

/**
 * Prints two figures. V8 collects garbage late while memory is free, so the peak includes the garbage of thousands of blocks a second.
 * The figure after a forced collection is the memory that the collector needs.
 */
async function reportMemory(peak: number): Promise<void> {
  const mb = (bytes: number) => `${Math.round(bytes / 1e6)} MB`;
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (let times = 0; times < 3; times += 1) {
    collect();
    await delay(500);
  }
  const { rss, heapUsed } = process.memoryUsage();
  console.log(
    `  memory after a collection           ${mb(rss)} resident, heap ${mb(heapUsed)} (goal 200 MB); peak ${mb(peak)}`,
  );
}
