import type { Sqlite } from '../lib/sqlite-file.ts';
import { createBookStore } from './books.ts';
import { createChannelStore } from './channels.ts';
import type { OpenDatabase } from './db/port.ts';
import { openLedgerDatabase, openSqlite } from './db/sqlite.ts';
import { createLightningStore } from './lightning.ts';
import { createMarketStore } from './market.ts';
import { createLedgerStore, createSettledReads, createWaitingBytes } from './payments.ts';
import type { LedgerStores } from './ports/stores.ts';
import {
  createCatalogueCopy,
  createGatewayTransfers,
  createProviderNotes,
  createRefusals,
  createRelayerSpending,
  createSelfTests,
  createServiceKeys,
} from './service-records.ts';

/** Opens the ledger in a file, creating and migrating it as needed: the default, for one machine. */
export const openSqliteStores = (file: string): LedgerStores => createSqliteStores(openLedgerDatabase(file));

/** The stores of an open file. Closing them closes the database. */
export const createSqliteStores = (db: Sqlite): LedgerStores => storesOver(openSqlite(db));

/** The stores of a ledger, over any database. */
export function storesOver({ ledger, ping, syncFailed, close }: OpenDatabase): LedgerStores {
  const waiting = createWaitingBytes();
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
    refusals: createRefusals(ledger),
    books: createBookStore(ledger),
    ping,
    syncFailed,
    close,
  };
}
