import { afterEach, beforeEach } from 'vitest';
import type { OpenChainClient } from '../../../src/chain/rpc/client.ts';
import { type CollectorStatus, NO_COLLECTOR } from '../../../src/collector/store/facts.ts';
import { createChainReads } from '../../../src/collector/store/reads.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import type { Sqlite } from '../../../src/lib/sqlite-file.ts';
import { account, emptyChainDatabase, toHex } from '../../support/chain/chain-rows.ts';
import { openClient } from '../../support/chain/client.ts';
import { type ChainSources, SETTINGS, USDC } from './fixture.ts';

/** The time of the newest collected block: a full hour and half an hour. */
export const UNTIL = 1_795_177_800 - (1_795_177_800 % 3600) + 1800;
export const HOUR = 3600;
export const EURC = toHex(account(0xe0));

/** A chain database to fill, and sources over it. They ask no node. */
export interface CollectedFixture {
  readonly db: Sqlite;
  readonly sources: ChainSources;
  /** The collector's own status. */
  status: CollectorStatus;
  nowMs: number;
}

export function useCollected(settings: Partial<ChainSources['collected']> = {}): () => CollectedFixture {
  let current: CollectedFixture | undefined;
  let chain: OpenChainClient | undefined;
  beforeEach(() => {
    const db = emptyChainDatabase();
    chain = openClient({ rpcUrls: ['http://127.0.0.1:1/key'], chainId: 5042, timeoutMs: 100 });
    const fixture: CollectedFixture = {
      db,
      nowMs: UNTIL * 1000 + 400,
      status: collectedStatus(),
      sources: {
        chain,
        chainName: { name: 'Arc', isPlayMoney: false },
        explorerUrl: null,
        clock: { nowMs: () => fixture.nowMs, sleep: systemClock.sleep },
        usdc: USDC,
        projectToken: null,
        collector: { status: () => fixture.status },
        reads: createChainReads(db),
        collected: {
          ...SETTINGS,
          watched: [
            { symbol: 'EURC', address: EURC },
            { symbol: 'cirBTC', address: USDC },
          ],
          ...settings,
        },
      },
    };
    current = fixture;
  });
  afterEach(() => chain?.close());
  return () => {
    if (!current) throw new Error('only inside a test');
    return current;
  };
}

/** Head and collected block are the same, and were seen just now. */
export function collectedStatus(): CollectorStatus {
  return {
    ...NO_COLLECTOR.status(),
    head: { number: 1000, hash: `0x${'7c'.repeat(32)}`, at: UNTIL },
    headAdvancedMs: UNTIL * 1000,
    headCheckedMs: UNTIL * 1000,
    collected: { number: 1000, at: UNTIL },
    firstCollected: 1,
    blocksCollected: 1000,
    blockTimeSeconds: 0.5,
  };
}

/** The last members of every answer when nothing lags. */
export const PROVENANCE = {
  freshness: { head: 1000, collected: 1000, lagBlocks: 0, lagSeconds: 0 },
  source: { name: 'Collected from eip155:5042 over JSON-RPC', url: 'http://127.0.0.1:1', retrievedAt: UNTIL },
};
