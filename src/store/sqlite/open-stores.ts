import type { Sqlite } from '../../lib/sqlite-file.ts';
import { createBookStore } from '../books.ts';
import { syncFailureOf } from '../db/group-commit.ts';
import { openLedgerDatabase, openSqliteDatabase } from '../db/sqlite.ts';
import { createLightningStore } from '../lightning.ts';
import { createMarketStore } from '../market.ts';
import type { LedgerStores } from '../ports/stores.ts';
import {
  createCatalogueCopy,
  createGatewayTransfers,
  createProviderNotes,
  createRelayerSpending,
  createSelfTests,
  createServiceKeys,
} from '../service-records.ts';
import { createWaitingBytes } from '../waiting-bytes.ts';

import { createChannelStore } from './channel-store.ts';
import { createLedgerStore } from './ledger-store.ts';
import { createSettledReads } from './settled-reads.ts';

/** Opens the ledger in a file, creating and migrating it as needed: the default, for one machine. */
export function openSqliteStores(file: string): LedgerStores {
  return createSqliteStores(openLedgerDatabase(file));
}

/** The stores of an open ledger. Closing them closes the database. */
export function createSqliteStores(db: Sqlite): LedgerStores {
  const waiting = createWaitingBytes();
  const payments = createLedgerStore(db, waiting);
  const ledger = openSqliteDatabase(db);
  return {
    payments,
    channels: createChannelStore(db, waiting),
    lightning: createLightningStore(ledger, payments.ping),
    transfers: createGatewayTransfers(ledger),
    spending: createRelayerSpending(ledger),
    selfTests: createSelfTests(ledger),
    market: createMarketStore(ledger),
    catalogue: createCatalogueCopy(ledger),
    settled: createSettledReads(db),
    keys: createServiceKeys(ledger),
    providers: createProviderNotes(ledger),
    books: createBookStore(ledger),
    ping: payments.ping,
    syncFailed: syncFailureOf(db),
    close: payments.close,
  };
}
