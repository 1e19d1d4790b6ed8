import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { createChainClient } from '../../src/chain/client.ts';
import { type Config, loadConfig } from '../../src/config.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';
import { createPayments } from '../../src/payment/payments.ts';
import { transactionText } from '../../src/payment/usdc/transaction-id.ts';
import { openLedgerDatabase, type Sqlite } from '../../src/store/database.ts';
import { createGatewayTransferStore } from '../../src/store/gateway-transfers.ts';
import { holdLedger } from '../../src/store/ledger-lock.ts';
import type { LedgerStore, Payment, PaymentState } from '../../src/store/ledger-port.ts';
import { createLedgerStore } from '../../src/store/ledger-store.ts';
import { createRelayerSpending } from '../../src/store/relayer-spending.ts';
import { createOutgoing } from '../../src/upstream/outgoing.ts';

const OPEN: readonly PaymentState[] = ['reserved', 'settling', 'unknown'];
const LOOK_MS = 250;

interface Reconciling {
  /** The service's own, with the data directory that was chosen. */
  readonly env: Record<string, string | undefined>;
  readonly timeoutMs: number;
  /** One line for each payment that was open. */
  readonly print: (line: string) => void;
  readonly say: (line: string) => void;
}

/**
 * Brings every open payment to its end, with the service's own parts: what was never sent is given back, the rest is looked up on the
 * chain and sent again where the chain does not know it. Returns whether nothing is open any more. Throws while the service holds the
 * ledger, and where a payment is of another network than the configured one.
 */
export async function reconcileLedger({ env, timeoutMs, print, say }: Reconciling): Promise<boolean> {
  const config = loadConfig(env);
  const lock = hold(config.dataDir);
  const db = openLedgerDatabase(join(config.dataDir, 'ledger.db'));
  const store = createLedgerStore(db);
  try {
    const open = await store.listByState(OPEN, Number.MAX_SAFE_INTEGER);
    say(`${open.length} open payments`);
    if (open.length === 0) return true;
    checkNetwork(open, config.network.caip2);
    await work(config, db, store, timeoutMs, say);
    const ends = await Promise.all(open.map(async ({ id }) => ({ id, row: await store.get(id) })));
    for (const { id, row } of ends) print(`${id} ${endOf(row)}`);
    return ends.every(({ row }) => row === null || !OPEN.includes(row.state));
  } finally {
    await store.close();
    lock.release();
  }
}

/** Throws with what to do about it when the service has the ledger. */
function hold(dataDir: string): { release(): void } {
  try {
    return holdLedger(join(dataDir, 'ledger.lock'));
  } catch (cause) {
    const detail = 'it reconciles by itself every few seconds; to do it by hand, stop it first';
    throw new Error(`a service is running on ${dataDir}: ${detail}`, { cause });
  }
}

/** The chain of another network would say of every authorization that it was never used. */
function checkNetwork(open: readonly Payment[], configured: string): void {
  const foreign = open.find(({ network }) => network !== configured);
  if (foreign) throw new Error(`payment ${foreign.id} is of ${foreign.network}; the configuration says ${configured}`);
}

async function work(
  config: Config,
  db: Sqlite,
  store: LedgerStore,
  timeoutMs: number,
  say: Reconciling['say'],
): Promise<void> {
  const { network, collector, rpcTimeoutMs } = config;
  const clock = systemClock;
  const log = createLogger('warn', process.stderr);
  const { rpcUrls, chainId } = network;
  const genesisHash = collector.genesisHash ?? undefined;
  const chain = createChainClient({ rpcUrls, chainId, genesisHash, timeoutMs: rpcTimeoutMs, log });
  const outgoing = createOutgoing({ web: config.web, publicOrigin: config.publicOrigin, clock, log });
  const stores = { store, spending: createRelayerSpending(db), transfers: createGatewayTransferStore(db) };
  const payments = createPayments({
    ...stores,
    config,
    chain,
    sources: {},
    clock,
    bootId: randomUUID(),
    outgoing,
    log,
  });
  const giveUpAt = clock.nowMs() + timeoutMs;
  try {
    await payments.start();
    let last = -1;
    for (;;) {
      const left = (await store.listByState(OPEN, Number.MAX_SAFE_INTEGER)).length;
      if (left !== last) say(`${left} still open`);
      last = left;
      if (left === 0 || clock.nowMs() >= giveUpAt) return;
      await clock.sleep(LOOK_MS);
    }
  } finally {
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
