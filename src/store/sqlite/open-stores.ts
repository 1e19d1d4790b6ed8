import type { Sqlite } from '../../lib/sqlite-file.ts';
import { createBookStore } from '../books.ts';
import { createChannelStore } from '../channels.ts';
import { closeAfterWrites, syncFailureOf } from '../db/group-commit.ts';
import { openLedgerDatabase, openSqliteDatabase, pingWrites } from '../db/sqlite.ts';
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

/** Opens the ledger in a file, creating and migrating it as needed: the default, for one machine. */
export function openSqliteStores(file: string): LedgerStores {
  return createSqliteStores(openLedgerDatabase(file));
}

/** The stores of an open ledger. Closing them closes the database. */
export function createSqliteStores(db: Sqlite): LedgerStores {
  const waiting = createWaitingBytes();
  const ledger = openSqliteDatabase(db);
  const anyPayment = db.prepare('SELECT id FROM usdc_payments LIMIT 1');
  const ping = async () => {
    anyPayment.get();
    await pingWrites(db);
  };
  const close = () => closeAfterWrites(db);
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
    syncFailed: syncFailureOf(db),
    close,
  };
}
