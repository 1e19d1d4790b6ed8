import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { loadConfig } from '../../src/config.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/common.ts';
import { openLedger } from '../../src/wiring/ledger.ts';
import { describePostgres } from '../support/ledger/ledger-adapters.ts';
import { listingRow } from '../support/ledger/market-rows.ts';
import { openMeddled, untilSomebodyWaits } from '../support/postgres/lock-waits.ts';

const ENV = { NETWORK: 'arc', SELLER_ADDRESS: `0x${'5e'.repeat(20)}`, RELAYER_PRIVATE_KEY: `0x${'1'.repeat(64)}` };
const RETRIES = 'ledger_retries_total';
/** So long that no busy machine reaches them. */
const TIMES = { LEDGER_CONNECT_TIMEOUT_MS: '60000', LEDGER_STATEMENT_TIMEOUT_MS: '60000' };

let folder: string;
let registry: Registry;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'percall-retries-'));
  registry = new Registry();
});
afterEach(() => rmSync(folder, { recursive: true }));

const open = (url: string) => {
  const config = loadConfig({ ...ENV, ...TIMES, DATA_DIR: folder, LEDGER_URL: url });
  return openLedger(config, systemClock, createLogger('silent'), registry);
};
const retries = async () => (await registry.getSingleMetric(RETRIES)?.get())?.values.map(({ value }) => value);

test('a ledger in a file reports no retries, because it never retries', async () => {
  const ledger = await open('');
  expect(await retries()).toBeUndefined();
  await ledger.close();
});

describePostgres('a ledger that is shared', () => {
  test('counts each retried transaction, starting from 0', async () => {
    const { url, blocker, watcher, close } = await openMeddled();
    const ledger = await open(url);
    try {
      const put = () => ledger.stores.market.put(listingRow(), 1, { total: 1, perDomain: 1 });
      expect(await put()).toBe('listed');
      expect(await retries()).toEqual([0]);
      // A foreign program that takes the turn last deadlocks with us. PostgreSQL undoes who looks first, which is us
      // unless this machine is slow: the program looks after 30 seconds. We may meet it again before it has the turn.
      await blocker.query("SET deadlock_timeout = '30s'");
      let itsOwn = 0;
      for (let tries = 0; tries < 5 && (await retries())?.[0] === 0; tries++) {
        await blocker.query('BEGIN');
        await blocker.query('UPDATE market_listings SET due_at = due_at + 1');
        const again = put();
        await untilSomebodyWaits(watcher);
        await blocker.query("UPDATE ledger_turns SET taken = taken + 1 WHERE name = 'others'").catch(() => itsOwn++);
        await blocker.query('ROLLBACK');
        expect(await again).toBe('updated');
      }
      const counted = (await retries())?.[0] ?? 0;
      expect(counted).toBeGreaterThan(0);
      const deadlocks = 'SELECT deadlocks::int AS n FROM pg_stat_database WHERE datname = current_database()';
      const ofOurs = async () => (await watcher.query<{ n: number }>(deadlocks)).rows[0]?.n;
      await expect.poll(ofOurs, { timeout: 60_000 }).toBe(counted + itsOwn);
    } finally {
      await Promise.all([ledger.close(), close()]);
    }
  });
});
