import type { Sqlite } from '../../lib/sqlite-file.ts';
import type { LedgerStores } from '../ports/stores.ts';
import { createWaitingBytes } from '../waiting-bytes.ts';
import { createBookStore } from './books.ts';
import { createCatalogueStore } from './catalogue-store.ts';
import { createChannelStore } from './channel-store.ts';
import { openLedgerDatabase } from './database.ts';
import { createGatewayTransferStore } from './gateway-transfers.ts';
import { syncFailureOf } from './group-commit.ts';
import { createLedgerStore } from './ledger-store.ts';
import { createLightningStore } from './lightning-store.ts';
import { createMarketStore } from './market-store.ts';
import { createProviderNotes } from './provider-notes.ts';
import { createRelayerSpending } from './relayer-spending.ts';
import { createSelfTestStore } from './selftest-store.ts';
import { createServiceKeys } from './service-keys.ts';
import { createSettledReads } from './settled-reads.ts';

/** Opens the ledger in a file, creating and migrating it as needed: the default, for one machine. */
export function openSqliteStores(file: string): LedgerStores {
  return createSqliteStores(openLedgerDatabase(file));
}

/** The stores of an open ledger. Closing them closes the database. */
export function createSqliteStores(db: Sqlite): LedgerStores {
  const waiting = createWaitingBytes();
  const payments = createLedgerStore(db, waiting);
  return {
    payments,
    channels: createChannelStore(db, waiting),
    lightning: createLightningStore(db),
    transfers: createGatewayTransferStore(db),
    spending: createRelayerSpending(db),
    selfTests: createSelfTestStore(db),
    market: createMarketStore(db),
    catalogue: createCatalogueStore(db),
    settled: createSettledReads(db),
    keys: createServiceKeys(db),
    providers: createProviderNotes(db),
    books: createBookStore(db),
    ping: payments.ping,
    syncFailed: syncFailureOf(db),
    close: payments.close,
  };
}
