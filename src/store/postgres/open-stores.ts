import type { Clock } from '../../lib/clock.ts';
import { inTime } from '../../lib/tasks.ts';
import { createBookStore } from '../books.ts';
import { createChannelStore } from '../channels.ts';
import { createRetry, fixed, ledgerPlace, openPools, type Pools, withOwnClient } from '../db/connections.ts';
import { migratePostgres } from '../db/migrate.ts';
import { openPostgresDatabase } from '../db/postgres.ts';
import { createWriteQueue } from '../db/write-queue.ts';
import { createLightningStore } from '../lightning.ts';
import { createMarketStore } from '../market.ts';
import { createLedgerStore, createSettledReads, createWaitingBytes } from '../payments.ts';
import type { LedgerStores } from '../ports/stores.ts';
import {
  createCatalogueCopy,
  createGatewayTransfers,
  createProviderNotes,
  createRelayerSpending,
  createSelfTests,
  createServiceKeys,
} from '../service-records.ts';

const ANY_PAYMENT = fixed('SELECT id FROM usdc_payments LIMIT 1');
const READ_ONLY = fixed('SHOW transaction_read_only');
/** Time-out of a ping. Load balancers ask every few seconds and wait about as long. */
const PING_MS = 2000;

interface PostgresStoresOptions {
  /** postgres://user:password@host:port/database, with the client's parameters (`sslmode`, `options`) as its query. */
  readonly url: string;
  /** The number of connections, at least 4: three for writing, the others for reading. */
  readonly poolSize: number;
  readonly connectTimeoutMs: number;
  readonly statementTimeoutMs: number;
  readonly clock: Clock;
  /** Called for each transaction that is run again because another one aborted it. */
  readonly onRetry?: () => void;
}

/**
 * Opens the ledger on PostgreSQL, or a database with its protocol, for several instances, and migrates it as needed.
 * Rejects when the database cannot be reached or is of a newer program. After a later failure of the database the pools reconnect.
 */
export async function openPostgresStores(options: PostgresStoresOptions): Promise<LedgerStores> {
  const { url, connectTimeoutMs, statementTimeoutMs, clock } = options;
  await withOwnClient(url, connectTimeoutMs, (client) =>
    migratePostgres(client, { name: `the ledger ${ledgerPlace(url)}`, nowMs: clock.nowMs() }),
  );
  const pools = openPools({
    url,
    connectTimeoutMs,
    statementTimeoutMs,
    size: options.poolSize,
    applicationName: 'percall',
  });
  const retry = createRetry(clock, options.onRetry);
  let hasFailed = false;
  const onFailure = () => {
    hasFailed = true;
  };
  const queue = (turn: string) => createWriteQueue({ pool: pools.writes, retry, turn, onFailure });
  const queues = { payments: queue('payments'), lightning: queue('lightning'), others: queue('others') };
  // A write of nothing takes the queue's turn, which is a row, and commits.
  const ping = createPing(pools, clock, async () => {
    if (!hasFailed) return;
    await queues.others.write({ statements: [], read: () => null });
    hasFailed = false;
  });
  const waiting = createWaitingBytes();
  const ledger = openPostgresDatabase(pools, retry, queues);
  let closed: Promise<void> | null = null;
  const close = () => {
    closed ??= Promise.all(Object.values(queues).map((one) => one.idle())).then(pools.close);
    return closed;
  };

  return {
    payments: createLedgerStore(ledger, waiting, { ping, close }),
    channels: createChannelStore(ledger, waiting),
    lightning: createLightningStore(ledger, ping),
    transfers: createGatewayTransfers(ledger),
    spending: createRelayerSpending(ledger),
    selfTests: createSelfTests(ledger),
    market: createMarketStore(ledger),
    catalogue: createCatalogueCopy(ledger),
    settled: createSettledReads(ledger),
    keys: createServiceKeys(ledger),
    providers: createProviderNotes(ledger),
    books: createBookStore(ledger),
    ping,
    // A database that is lost for a while comes back.
    syncFailed: new Promise(() => {}),
    close,
  };
}

/**
 * Rejects when nothing can be read within PING_MS, when a read-only replica answers, as after a failover, and when `checkWrites` rejects: the disk of a
 * server may take no writes while it still answers reads.
 * Concurrent calls share one answer, so that many of them do not use up the connections.
 */
function createPing({ read }: Pools, clock: Clock, checkWrites: () => Promise<void>): () => Promise<void> {
  let asking: Promise<void> | null = null;

  async function ask(): Promise<void> {
    await read(ANY_PAYMENT);
    const [state] = await read<{ transaction_read_only: string }>(READ_ONLY);
    if (state?.transaction_read_only !== 'off') throw new Error('the database takes no writes');
    await checkWrites();
  }

  return async () => {
    asking ??= ask().finally(() => {
      asking = null;
    });
    await inTime(asking, PING_MS, clock, () => new Error('the database does not answer'));
  };
}
