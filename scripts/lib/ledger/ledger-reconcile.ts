import { join } from 'node:path';
import type { Logger } from 'pino';
import { createChainClient } from '../../../src/chain/rpc/client.ts';
import { WHOLE } from '../../../src/cluster/part.ts';
import { type Config, loadConfig } from '../../../src/config.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { createPayments } from '../../../src/payment/open-payments.ts';
import { transactionText } from '../../../src/payment/transaction-id.ts';
import type { Payment, PaymentState } from '../../../src/store/ports/sales.ts';
import { holdLedger } from '../../../src/store/sqlite/ledger-lock.ts';
import { createOutgoing } from '../../../src/upstream/outgoing.ts';
import { type OpenLedger, openLedger } from '../../../src/wiring/open-ledger.ts';
import { existingDatabase } from './ledger-file.ts';
import { type LedgerLocation, openDatabaseReports } from './ledger-location.ts';

const OPEN: readonly PaymentState[] = ['reserved', 'settling', 'unknown'];
const LOOK_MS = 250;

interface Reconciling {
  /** The service's own environment. */
  readonly env: Record<string, string | undefined>;
  readonly location: LedgerLocation;
  readonly timeoutMs: number;
  /** Prints one line for each payment that was open. */
  readonly print: (line: string) => void;
  readonly say: (line: string) => void;
}

const RECONCILES_ITSELF = 'it reconciles by itself every few seconds; to do it by hand, stop it first';

/**
 * Brings every open payment to its final state, with the service's own parts. Returns whether none is open any more.
 * A payment that was never sent is released. The others are looked up on the chain, and sent again location the chain does not know them.
 * Throws while a service uses the ledger, and for a payment of another network than the configured one.
 */
export async function reconcileLedger({ env, location, timeoutMs, print, say }: Reconciling): Promise<boolean> {
  const own = 'url' in location ? { LEDGER_URL: location.url } : { LEDGER_URL: '', DATA_DIR: location.dataDir };
  const config = loadConfig({ ...env, ...own, WORKERS: '1' });
  if ('url' in location) await refuseBesideInstances(location.url);
  else existingDatabase(location.dataDir, 'ledger.db');
  // Locks the data directory for a PostgreSQL ledger too, because an instance takes over what the last instance of its directory left.
  const lock = lockLedger(config.dataDir);
  const log = createLogger('warn', process.stderr);
  let ledger: OpenLedger | null = null;
  try {
    ledger = await openLedger(config, WHOLE, systemClock, log);
    const { payments: store } = ledger.stores;
    const open = await store.listByState(OPEN, Number.MAX_SAFE_INTEGER);
    say(`${open.length} open payments`);
    if (open.length === 0) return true;
    checkNetwork(open, config.network.caip2);
    await work(config, ledger, log, timeoutMs, say);
    const ends = await Promise.all(open.map(async ({ id }) => ({ id, row: await store.get(id) })));
    for (const { id, row } of ends) print(`${id} ${endOf(row)}`);
    return ends.every(({ row }) => row === null || !OPEN.includes(row.state));
  } finally {
    await ledger?.close();
    lock.release();
  }
}

/** Locks the directory. When the service holds it, throws an error that says what to do. */
function lockLedger(dataDir: string): { release(): void } {
  try {
    return holdLedger(join(dataDir, 'ledger.lock'));
  } catch (cause) {
    throw new Error(`a service is running on ${dataDir}: ${RECONCILES_ITSELF}`, { cause });
  }
}

/** The same for a shared ledger. An instance that starts later lets this process lead. */
async function refuseBesideInstances(url: string): Promise<void> {
  const reports = openDatabaseReports(url);
  try {
    const living = await reports.living();
    if (living > 0)
      throw new Error(`a service is running over the ledger (instances: ${living}): ${RECONCILES_ITSELF}`);
  } finally {
    await reports.close();
  }
}

/** Another network's chain would report every authorization as unused. */
function checkNetwork(open: readonly Payment[], configured: string): void {
  const foreign = open.find(({ network }) => network !== configured);
  if (foreign) throw new Error(`payment ${foreign.id} is of ${foreign.network}; the configuration says ${configured}`);
}

async function work(
  config: Config,
  ledger: OpenLedger,
  log: Logger,
  timeoutMs: number,
  say: Reconciling['say'],
): Promise<void> {
  const { network, collector, rpcTimeoutMs } = config;
  const clock = systemClock;
  const { rpcUrls, chainId } = network;
  const genesisHash = collector.genesisHash ?? undefined;
  const chain = createChainClient({ rpcUrls, chainId, genesisHash, timeoutMs: rpcTimeoutMs, log });
  const outgoing = createOutgoing({ web: config.web, publicOrigin: config.publicOrigin, clock, log });
  const { stores, bootId, instance } = ledger;
  const { payments: store, channels, spending, transfers } = stores;
  const payments = createPayments({
    ...{ config, chain, store, channels, spending, transfers, sources: {}, clock, bootId, outgoing, log },
    // No other instance is alive, so there is no heartbeat to wait for.
    ...(instance && { place: { ...instance.place, takeOverAfterMs: 0 } }),
  });
  const giveUpAt = clock.nowMs() + timeoutMs;
  try {
    await payments.start();
    if (!ledger.leads()) throw new Error(`an instance has begun to run over the ledger: ${RECONCILES_ITSELF}`);
    let last = -1;
    for (;;) {
      const left = (await store.listByState(OPEN, Number.MAX_SAFE_INTEGER)).length;
      if (left !== last) say(`${left} still open`);
      last = left;
      if (left === 0 || clock.nowMs() >= giveUpAt) return;
      await clock.sleep(LOOK_MS);
    }
  } finally {
    await instance?.membership.stop();
    await payments.stop();
    await outgoing.close();
    await chain.close();
  }
}

function endOf(row: Payment | null): string {
  if (row === null) return 'released: nothing had been sent';
  if (row.state === 'settled') return `settled ${transactionText(row.transaction) ?? ''} in block ${row.block}`;
  if (row.state === 'failed') return `failed, not charged: ${row.reason}`;
  return `still ${row.state}`;
}
