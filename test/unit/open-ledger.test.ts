import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Part, WHOLE } from '../../src/cluster/part.ts';
import { ConfigError, loadConfig } from '../../src/config.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';
import { openSqliteStores } from '../../src/store/sqlite/open-stores.ts';
import { openLedger } from '../../src/wiring/open-ledger.ts';
import { channelState, channelTerms } from '../support/ledger/channel-rows.ts';
import { newKey } from '../support/usdc/payments.ts';

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

// Two API processes that create the file at the same time disturb each other, and then the service does not start.
test('the primary creates the shared windows before the workers start', async () => {
  const db = new Database(await openAs({ kind: 'primary', living: () => [] }), { readonly: true, fileMustExist: true });
  expect(db.pragma('journal_mode', { simple: true })).toBe('wal');
  expect(db.prepare('SELECT count(*) FROM minute_windows').pluck().get()).toBe(0);
  db.close();
});

test('a single process shares no windows and creates no file for them', async () => {
  expect(existsSync(await openAs(WHOLE))).toBe(false);
});

describe('a seller whose address is that of the channels’ authorizer', () => {
  const authorizer = newKey();
  const config = (chain: Record<string, string> = {}) =>
    loadConfig({
      NETWORK: 'arc',
      SELLER_ADDRESS: authorizer.address,
      RELAYER_PRIVATE_KEY: `0x${'1'.repeat(64)}`,
      CHANNELS: 'on',
      CHANNELS_AUTHORIZER_KEY: `0x${Buffer.from(authorizer.privateKey).toString('hex')}`,
      DATA_DIR: folder,
      ...chain,
    });
  const lines: string[] = [];
  const log = createLogger('info', { write: (line) => void lines.push(line) });
  const open = (part: Part, chain?: Record<string, string>) => openLedger(config(chain), part, systemClock, log);

  beforeEach(() => void lines.splice(0));

  test('is refused by name while the ledger has no channel, and warned of with the way out where it has', async () => {
    await expect(open(WHOLE)).rejects.toThrow(ConfigError);
    await expect(open(WHOLE)).rejects.toThrow('SELLER_ADDRESS is the address of CHANNELS_AUTHORIZER_KEY');
    const stores = openSqliteStores(join(folder, 'ledger.db'));
    await stores.channels.note(channelTerms('a'), channelState(), 1);
    await stores.close();
    const ledger = await open(WHOLE);
    await ledger.close();
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('npm run ledger -- claim');
    expect(lines[0]).toContain('another CHANNELS_AUTHORIZER_KEY');
    // The channels of another network are no reason to go on.
    await expect(open(WHOLE, { NETWORK: 'arc-testnet' })).rejects.toThrow(ConfigError);
  });

  test('is allowed while channels are off', async () => {
    await (await open(WHOLE, { CHANNELS: 'off' })).close();
    expect(lines).toEqual([]);
  });
});
