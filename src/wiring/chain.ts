import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { countRpc, createChainClient, type OpenChainClient, publishAgreement } from '../chain/rpc/client.ts';
import { type Collector, createCollector } from '../collector/collector.ts';
import { createDescribeCode } from '../collector/labels.ts';
import { createProbe, nameEndpoints } from '../collector/probe.ts';
import { createDeployReads } from '../collector/store/accounts.ts';
import { openChainCopy } from '../collector/store/copy.ts';
import { openChainDatabase } from '../collector/store/database.ts';
import { NO_COLLECTOR } from '../collector/store/facts.ts';
import { createFeeSteps } from '../collector/store/fees.ts';
import { createProbeWrites } from '../collector/store/probes.ts';
import { createChainReads } from '../collector/store/reads.ts';
import { createTradeReads } from '../collector/store/trades.ts';
import { createTokenAccountScanner, createTokenEventScanner } from '../collector/tokens.ts';
import { createTradeScanner } from '../collector/trades.ts';
import type { Config } from '../config.ts';
import { systemClock } from '../lib/clock.ts';
import type { Common, Log } from '../lib/common.ts';
import type { Sqlite } from '../lib/sqlite-file.ts';

/** Says what the number of the chain's providers means. It sends nothing yet. */
export function openChain(config: Config, registry: Registry, log: Logger): OpenChainClient {
  const { network, rpcTimeoutMs: timeoutMs, collector } = config;
  const common = { clock: systemClock, log };
  const chain = createChainClient(common, {
    rpcUrls: network.rpcUrls,
    chainId: network.chainId,
    genesisHash: collector.genesisHash ?? undefined,
    ...countRpc(registry, network.rpcUrls),
    timeoutMs,
  });
  publishAgreement(registry, chain);
  const { witnesses } = chain.agreed;
  if (witnesses === 1) log.warn('one RPC provider: its word alone decides that you were paid');
  else if (witnesses === 2) log.info('two RPC providers: a sale needs both; with three, one may be down or lie');
  return chain;
}

/** Collector and probe, where this process runs them, are not started yet. */
export function openCollecting(common: Common, config: Config, chain: OpenChainClient) {
  const data = openChainData(config, common.log);
  // A copy is never written to.
  const { db } = data;
  const own = db && openCollector(common, config, chain, db);
  const probe = db && config.collector.enabled ? openProbe(common.log, config, chain, db) : null;

  return {
    collector: data.collector ?? own ?? NO_COLLECTOR,
    reads: data.reads,
    feeSteps: data.feeSteps,
    endpoints: nameEndpoints(config.network.rpcUrls),
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

function openChainData({ collector, dataDir, network: { chainId } }: Config, log: Log) {
  const { copyFile, backfillHours } = collector;
  if (copyFile !== null) return { db: null, ...openChainCopy(log, { file: copyFile, chainId, backfillHours }) };
  const file = join(dataDir, 'chain.db');
  const db = openChainDatabase(file);
  return { db, reads: createChainReads(db), collector: null, ...createFeeSteps(db), close: () => void db.close() };
}

/** Null when it is off. */
function openCollector({ clock, log }: Common, config: Config, chain: OpenChainClient, db: Sqlite): Collector | null {
  const { enabled, wsUrls, requestsPerSecond, pollIntervalMs, backfillHours, retentionDays } = config.collector;
  if (!enabled) return null;
  const watch = { ...config.watch, usdc: config.network.usdc };
  const scanners = [
    createTradeScanner(watch, createTradeReads(db), log),
    createTokenEventScanner(watch),
    createTokenAccountScanner(watch),
  ];
  const limits = { requestsPerSecond, pollIntervalMs, backfillHours, retentionDays };
  const describeCode = createDescribeCode(createDeployReads(db));
  return createCollector({ clock, log }, chain, db, { limits, scanners, describeCode, wsUrls });
}

function openProbe(log: Log, config: Config, { allowances }: OpenChainClient, db: Sqlite) {
  const { rpcUrls, chainId } = config.network;
  const { rpcTimeoutMs: timeoutMs, collected } = config;
  const { probeIntervalMs: intervalMs } = collected;
  const writes = createProbeWrites(db);
  const common = { clock: systemClock, log };
  return createProbe(common, { rpcUrls, allowances, chainId, intervalMs, writes, timeoutMs });
}
