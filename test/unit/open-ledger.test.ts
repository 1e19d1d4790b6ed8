import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ConfigError, loadConfig } from '../../src/config.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/common.ts';
import { openSqliteStores } from '../../src/store/open.ts';
import { openLedger } from '../../src/wiring/ledger.ts';
import { channelState, channelTerms } from '../support/ledger/channel-rows.ts';
import { newKey } from '../support/usdc/payments.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'percall-open-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

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
  const open = (chain?: Record<string, string>) => openLedger(config(chain), systemClock, log);

  beforeEach(() => void lines.splice(0));

  test('is refused by name while the ledger has no channel, and warned of with the way out where it has', async () => {
    await expect(open()).rejects.toThrow(ConfigError);
    await expect(open()).rejects.toThrow('SELLER_ADDRESS is the address of CHANNELS_AUTHORIZER_KEY');
    const stores = openSqliteStores(join(folder, 'ledger.db'));
    await stores.channels.note(channelTerms('a'), channelState(), 1);
    await stores.close();
    const ledger = await open();
    await ledger.close();
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('npm run ledger -- claim');
    expect(lines[0]).toContain('another CHANNELS_AUTHORIZER_KEY');
    // The channels of another network are no reason to go on.
    await expect(open({ NETWORK: 'arc-testnet' })).rejects.toThrow(ConfigError);
  });

  test('is allowed while channels are off', async () => {
    await (await open({ CHANNELS: 'off' })).close();
    expect(lines).toEqual([]);
  });
});
