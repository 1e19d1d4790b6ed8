import type { BookStore } from './books.ts';
import type { CatalogueStore } from './catalogue.ts';
import type { ChannelStore } from './channels.ts';
import type { MarketStore } from './market.ts';
import type { LightningStore } from './proofs.ts';
import type { ProviderNotes } from './providers.ts';
import type { LedgerStore } from './sales.ts';
import type { SelfTestStore } from './selftest.ts';
import type { ServiceKeyStore } from './service-keys.ts';
import type { SettledReads } from './settled.ts';
import type { RelayerSpendingStore } from './spending.ts';
import type { GatewayTransferStore } from './transfers.ts';

/** All stores of the ledger's database, for either database. */
export interface LedgerStores {
  readonly payments: LedgerStore;
  readonly channels: ChannelStore;
  readonly lightning: LightningStore;
  readonly transfers: GatewayTransferStore;
  readonly spending: RelayerSpendingStore;
  readonly selfTests: SelfTestStore;
  readonly market: MarketStore;
  readonly catalogue: CatalogueStore;
  readonly settled: SettledReads;
  readonly keys: ServiceKeyStore;
  readonly providers: ProviderNotes;
  readonly books: BookStore;
  /** Rejects when the ledger cannot be read, and when its database accepts no writes. */
  ping(): Promise<void>;
  /**
   * Resolves with the reason when the stores will take no more writes before the service is started again; else never.
   */
  readonly syncFailed: Promise<Error>;
  /** Finishes earlier calls. Afterwards every store rejects. */
  close(): Promise<void>;
}
