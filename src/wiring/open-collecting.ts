import { join } from 'node:path';
import type { Logger } from 'pino';
import type { OpenChainClient } from '../chain/rpc/client.ts';
import { openCollector } from '../collector/open-collector.ts';
import { createProbe, nameEndpoints } from '../collector/probe.ts';
import { openChainCopy } from '../collector/store/copy.ts';
import { openChainDatabase } from '../collector/store/database.ts';
import { NO_COLLECTOR } from '../collector/store/facts.ts';
import { createFeeSteps } from '../collector/store/fees.ts';
import { createProbeWrites } from '../collector/store/probes.ts';
import { createChainReads } from '../collector/store/reads.ts';
import type { Config } from '../config.ts';
import { type Clock, systemClock } from '../lib/clock.ts';
import type { Sqlite } from '../store/sqlite/database.ts';

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
    ...{ rpcUrls, allowances, chainId, intervalMs, clock: systemClock, log },
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
