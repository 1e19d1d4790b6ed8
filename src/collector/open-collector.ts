import type { ChainClient } from '../chain/rpc/client.ts';
import type { Clock } from '../lib/clock.ts';
import type { Sqlite } from '../store/sqlite/database.ts';
import { type Collector, createCollector } from './collector.ts';
import type { CollectorLimits, CollectorLog } from './context.ts';
import { createDescribeCode } from './labels.ts';
import type { WatchList } from './scanner.ts';
import { createDeployReads } from './store/deploys.ts';
import { createTradeReads } from './store/trades.ts';
import { createTokenAccountScanner, createTokenEventScanner } from './tokens.ts';
import { createTradeScanner } from './trades.ts';

/** The collector's limits that the operator sets, and whether it runs at all. */
export interface CollectorSettings
  extends Pick<CollectorLimits, 'requestsPerSecond' | 'pollIntervalMs' | 'backfillHours' | 'retentionDays'> {
  readonly enabled: boolean;
  readonly wsUrls: readonly string[];
}

/** What the service's collector needs. */
export interface OpenCollectorOptions {
  readonly chain: ChainClient;
  readonly db: Sqlite;
  readonly clock: Clock;
  readonly log: CollectorLog;
  readonly settings: CollectorSettings;
  readonly watch: WatchList;
}

/** Creates the service's collector with all its scanners, not started; null when it is switched off. */
export function openCollector(options: OpenCollectorOptions): Collector | null {
  const { settings, watch, db, ...rest } = options;
  const { enabled, wsUrls, requestsPerSecond, pollIntervalMs, backfillHours, retentionDays } = settings;
  if (!enabled) return null;
  return createCollector({
    ...rest,
    db,
    wsUrls,
    limits: { requestsPerSecond, pollIntervalMs, backfillHours, retentionDays },
    scanners: [
      createTradeScanner({ watch, reads: createTradeReads(db), log: rest.log }),
      createTokenEventScanner(watch),
      createTokenAccountScanner(watch),
    ],
    describeCode: createDescribeCode(createDeployReads(db)),
  });
}
