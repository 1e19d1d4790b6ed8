import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { OpenChainClient } from '../../../../src/chain/rpc/client.ts';
import { type Collector, createCollector } from '../../../../src/collector/collector.ts';
import type { CollectorLimits, DescribeCode } from '../../../../src/collector/context.ts';
import type { LogScanner } from '../../../../src/collector/scanner.ts';
import { openChainDatabase } from '../../../../src/collector/store/database.ts';
import type { Sqlite } from '../../../../src/lib/sqlite-file.ts';
import { openClient } from '../client.ts';
import type { VirtualClock } from './virtual-clock.ts';

/** A collector over its own client and database file. */
export interface Collecting {
  readonly collector: Collector;
  readonly db: Sqlite;
  readonly chain: OpenChainClient;
  /** Lines at warn and above. */
  readonly lines: string[];
  /** Ends it at once; nothing is finished or flushed. */
  kill(): Promise<void>;
}

export interface CollectingOptions {
  readonly urls: readonly string[];
  readonly clock: VirtualClock;
  readonly file: string;
  readonly limits?: Partial<CollectorLimits>;
  readonly scanners?: readonly LogScanner[];
  /** The simulated nodes run no contracts, so a test says itself what they are. */
  readonly describeCode?: DescribeCode;
  /** The time-out of a provider, in real milliseconds. */
  readonly timeoutMs?: number;
}

/** A database file for one test. */
export const freshFile = (): string => join(mkdtempSync(join(tmpdir(), 'collector-')), 'chain.db');

/** Starts the collector as the service does, on virtual time. */
export function startCollecting(options: CollectingOptions): Collecting {
  const { urls, clock, file, limits = {}, scanners = [], describeCode = null, timeoutMs = 2000 } = options;
  const lines: string[] = [];
  const note = (fields: Record<string, unknown>, message: string) =>
    void lines.push(`${message} ${String(fields.err ?? '')}`);
  const log = { info: () => undefined, warn: note, error: note };
  const chain = openClient({ rpcUrls: urls, chainId: 5042, timeoutMs, clock });
  const db = openChainDatabase(file);
  const collector = createCollector({ clock, log }, chain, db, { limits, scanners, describeCode });
  collector.start();
  return {
    collector,
    db,
    chain,
    lines,
    async kill() {
      await collector.stop();
      db.close();
      await chain.close();
    },
  };
}
