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
import { type LedgerWhere, openDatabaseReports } from './ledger-where.ts';

const OPEN: readonly PaymentState[] = ['reserved', 'settling', 'unknown'];
const LOOK_MS = 250;

interface Reconciling {
  /** The service's own environment. */
  readonly env: Record<string, string | undefined>;
  readonly where: LedgerWhere;
  readonly timeoutMs: number;
  /** One line for each payment that was open. */
  readonly print: (line: string) => void;
  readonly say: (line: string) => void;
}

const BY_ITSELF = 'it reconciles by itself every few seconds; to do it by hand, stop it first';

/**
 * Brings every open payment to its end, with the service's own parts: what was never sent is given back, the rest is looked up on the
 * chain and sent again where the chain does not know it. Returns whether nothing is open any more. Throws while a service holds the
 * ledger or works on it, and where a payment is of another network than the configured one.
 */
export async function reconcileLedger({ env, where, timeoutMs, print, say }: Reconciling): Promise<boolean> {
  const own = 'url' in where ? { LEDGER_URL: where.url } : { LEDGER_URL: '', DATA_DIR: where.dataDir };
  const config = loadConfig({ ...env, ...own, WORKERS: '1' });
  if ('url' in where) await refuseBesideInstances(where.url);
  else existingDatabase(where.dataDir, 'ledger.db');
  // With a database too: an instance takes over what the last one of its data directory left, so nobody else may have that.
  const held = hold(config.dataDir);
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
    held.release();
  }
}

/** Throws with what to do about it when the service has the ledger. */
function hold(dataDir: string): { release(): void } {
  try {
    return holdLedger(join(dataDir, 'ledger.lock'));
  } catch (cause) {
    throw new Error(`a service is running on ${dataDir}: ${BY_ITSELF}`, { cause });
  }
}

/** The same where several may have it; whoever comes later follows the one that reconciles. */
async function refuseBesideInstances(url: string): Promise<void> {
  const reports = openDatabaseReports(url);
  try {
    const living = await reports.living();
    if (living > 0) throw new Error(`a service is running over the ledger (instances: ${living}): ${BY_ITSELF}`);
  } finally {
    await reports.close();
  }
}

/** The chain of another network would say of every authorization that it was never used. */
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
  const { payments: store, spending, transfers } = stores;
  const payments = createPayments({
    ...{ config, chain, store, spending, transfers, sources: {}, clock, bootId, outgoing, log },
    // Nobody else is living, so nobody is about to be known.
    ...(instance && { place: { ...instance.place, patienceMs: 0 } }),
  });
  const giveUpAt = clock.nowMs() + timeoutMs;
  try {
    await payments.start();
    if (!ledger.leads()) throw new Error(`an instance has begun to run over the ledger: ${BY_ITSELF}`);
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
  if (row === null) return 'given back: nothing had been sent';
  if (row.state === 'settled') return `settled ${transactionText(row.transaction) ?? ''} in block ${row.block}`;
  if (row.state === 'failed') return `failed, not charged: ${row.reason}`;
  return `still ${row.state}`;
}
