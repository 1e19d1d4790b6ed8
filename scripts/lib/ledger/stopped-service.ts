import { join } from 'node:path';
import type { Logger } from 'pino';
import { createChainClient } from '../../../src/chain/rpc/client.ts';
import { type Config, loadConfig } from '../../../src/config.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createLogger } from '../../../src/lib/common.ts';
import { holdLedger } from '../../../src/store/ledger-lock.ts';
import { type OpenLedger, openLedger } from '../../../src/wiring/ledger.ts';
import { createPayments } from '../../../src/wiring/payments.ts';
import type { RailList } from '../../../src/wiring/rails.ts';
import { createOutgoing } from '../../../src/wiring/sources.ts';
import { closeDataFolder, existingDatabase } from './ledger-file.ts';
import { type LedgerLocation, openDatabaseReports } from './ledger-location.ts';

/** A command that works in the place of the service. */
export interface StoppedService {
  /** The service's own environment. */
  readonly env: Record<string, string | undefined>;
  readonly location: LedgerLocation;
  readonly timeoutMs: number;
  /** Prints one line of the answer. */
  readonly print: (line: string) => void;
  readonly say: (line: string) => void;
}

/** The ledger of a service that is stopped, with the service's configuration. */
export interface HeldLedger {
  readonly config: Config;
  readonly ledger: OpenLedger;
  readonly log: Logger;
  /** What the service does by itself, and what to do. Part of the error when a service runs. */
  readonly advice: string;
}

/** Holds the ledger during `work`, so that no service can start on it. Throws while a service uses the ledger; `advice` says what to do then. */
export async function withHeldLedger<T>(
  { env, location }: Pick<StoppedService, 'env' | 'location'>,
  advice: string,
  work: (held: HeldLedger) => Promise<T>,
): Promise<T> {
  const own = 'url' in location ? { LEDGER_URL: location.url } : { LEDGER_URL: '', DATA_DIR: location.dataDir };
  const config = loadConfig({ ...env, ...own });
  if ('url' in location) await refuseBesideInstances(location.url, advice);
  else existingDatabase(location.dataDir, 'ledger.db');
  closeDataFolder(config.dataDir);
  // Locks the data directory for a PostgreSQL ledger too, because an instance takes over what the last instance of its directory left.
  const lock = lockLedger(config.dataDir, advice);
  const log = createLogger('warn', process.stderr);
  let ledger: OpenLedger | null = null;
  try {
    ledger = await openLedger(config, systemClock, log);
    return await work({ config, ledger, log, advice });
  } finally {
    await ledger?.close();
    lock.release();
  }
}

/** Locks the directory. When the service holds it, throws an error that says what to do. */
function lockLedger(dataDir: string, advice: string): { release(): void } {
  try {
    return holdLedger(join(dataDir, 'ledger.lock'));
  } catch (cause) {
    throw new Error(`a service is running on ${dataDir}: ${advice}`, { cause });
  }
}

/** The same for a shared ledger. An instance that starts later lets this process lead. */
async function refuseBesideInstances(url: string, advice: string): Promise<void> {
  const reports = openDatabaseReports(url);
  try {
    const living = await reports.living();
    if (living > 0) throw new Error(`a service is running over the ledger (instances: ${living}): ${advice}`);
  } finally {
    await reports.close();
  }
}

/** Runs the service's payments during `work`, with these rails. Throws when an instance has begun to lead meanwhile. */
export async function withPayments<T>(
  { config, ledger, log, advice }: HeldLedger,
  work: () => Promise<T>,
  railList?: RailList,
): Promise<T> {
  const { network, collector, rpcTimeoutMs } = config;
  const clock = systemClock;
  const { rpcUrls, chainId } = network;
  const genesisHash = collector.genesisHash ?? undefined;
  const chain = createChainClient({ clock, log }, { rpcUrls, chainId, genesisHash, timeoutMs: rpcTimeoutMs });
  const outgoing = createOutgoing({ clock, log }, config.web, config.publicOrigin);
  const { stores, bootId, instance } = ledger;
  // The command compares no books.
  const { payments: store, books: _books, ...others } = stores;
  const payments = createPayments({
    ...others,
    config,
    chain,
    store,
    clock,
    bootId,
    outgoing,
    log,
    ...(railList && { railList }),
    // No other instance is alive, so there is no heartbeat to wait for.
    ...(instance && { settledBy: { ...instance.settledBy, takeOverAfterMs: 0 } }),
  });
  try {
    await payments.start();
    if (!ledger.leads()) throw new Error(`an instance has begun to run over the ledger: ${advice}`);
    return await work();
  } finally {
    await instance?.membership.stop();
    await payments.stop();
    await outgoing.close();
    await chain.close();
  }
}
