import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { type ChainClient, createChainClient, type OpenChainClient } from '../chain/rpc/client.ts';
import { countRpc, publishAgreement } from '../chain/rpc/metrics.ts';
import { type Collector, createCollector } from '../collector/collector.ts';
import type { CollectorLimits, CollectorLog } from '../collector/context.ts';
import { createDescribeCode } from '../collector/labels.ts';
import { createProbe, nameEndpoints } from '../collector/probe.ts';
import type { WatchList } from '../collector/scanner.ts';
import { openChainCopy } from '../collector/store/copy.ts';
import { openChainDatabase } from '../collector/store/database.ts';
import { createDeployReads } from '../collector/store/deploys.ts';
import { NO_COLLECTOR } from '../collector/store/facts.ts';
import { createFeeSteps } from '../collector/store/fees.ts';
import { createProbeWrites } from '../collector/store/probes.ts';
import { createChainReads } from '../collector/store/reads.ts';
import { createTradeReads } from '../collector/store/trades.ts';
import { createTokenAccountScanner, createTokenEventScanner } from '../collector/tokens.ts';
import { createTradeScanner } from '../collector/trades.ts';
import type { Config } from '../config.ts';
import { type Clock, systemClock } from '../lib/clock.ts';
import type { Sqlite } from '../lib/sqlite-file.ts';

/**
 * Opens the client for the chain with its metrics, and says in one line what the number of its providers means. It
 * sends nothing yet.
 */
export function openChain(config: Config, registry: Registry, log: Logger): OpenChainClient {
  const { network, rpcTimeoutMs: timeoutMs, collector } = config;
  const chain = createChainClient({
    rpcUrls: network.rpcUrls,
    chainId: network.chainId,
    genesisHash: collector.genesisHash ?? undefined,
    ...countRpc(registry, network.rpcUrls),
    timeoutMs,
    log,
  });
  publishAgreement(registry, chain);
  const { witnesses } = chain.agreed;
  if (witnesses === 1) log.warn('one RPC provider: its word alone decides that you were paid');
  else if (witnesses === 2) log.info('two RPC providers: a sale needs both; with three, one may be down or lie');
  return chain;
}

interface CollectingParts {
  config: Config;
  chain: OpenChainClient;
  clock: Clock;
  log: Logger;
}

/** Opens the collected chain data. The collector and the probe, if this process runs them, are not started yet. */
export function openCollecting({ config, chain, clock, log }: CollectingParts) {
  const data = openChainData(config, log);
  const { collector: settings, network, watch } = config;
  // A copy is never written to.
  const { db } = data;
  const own = db && openCollector({ chain, db, clock, log, settings, watch: { ...watch, usdc: network.usdc } });
  const probe = db && settings.enabled ? openProbe(config, chain, db, log) : null;

  return {
    collector: data.collector ?? own ?? NO_COLLECTOR,
    reads: data.reads,
    feeSteps: data.feeSteps,
    endpoints: nameEndpoints(network.rpcUrls),
    start: (): void => {
      own?.start();
      probe?.start();
    },
    stop: async (): Promise<void> => {
      await own?.stop();
      await probe?.stop();
      data.close();
    },
  };
}

export type Collecting = ReturnType<typeof openCollecting>;

function openProbe(
  { network, collected, rpcTimeoutMs }: Config,
  { allowances }: OpenChainClient,
  db: Sqlite,
  log: Logger,
) {
  const { rpcUrls, chainId } = network;
  const intervalMs = collected.probeIntervalMs;
  return createProbe({
    rpcUrls,
    allowances,
    chainId,
    intervalMs,
    clock: systemClock,
    log,
    writes: createProbeWrites(db),
    timeoutMs: rpcTimeoutMs,
  });
}

/** Opens the source of collected data: a copy of another service's database, or our own. */
function openChainData({ collector, dataDir, network: { chainId } }: Config, log: Logger) {
  const { copyFile, backfillHours } = collector;
  if (copyFile !== null) return { db: null, ...openChainCopy({ file: copyFile, chainId, backfillHours, log }) };
  const file = join(dataDir, 'chain.db');
  const db = openChainDatabase(file);
  return { db, reads: createChainReads(db), collector: null, ...createFeeSteps(db), close: () => void db.close() };
}

/** The collector's limits that the operator sets, and whether it runs at all. */
interface CollectorSettings
  extends Pick<CollectorLimits, 'requestsPerSecond' | 'pollIntervalMs' | 'backfillHours' | 'retentionDays'> {
  readonly enabled: boolean;
  readonly wsUrls: readonly string[];
}

/** What the service's collector needs. */
interface OpenCollectorOptions {
  readonly chain: ChainClient;
  readonly db: Sqlite;
  readonly clock: Clock;
  readonly log: CollectorLog;
  readonly settings: CollectorSettings;
  readonly watch: WatchList;
}

/** Creates the service's collector with all its scanners, not started; null when it is switched off. */
function openCollector(options: OpenCollectorOptions): Collector | null {
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
