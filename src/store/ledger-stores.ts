import type { CatalogueStore } from './catalogue-store.ts';
import type { GatewayTransferStore } from './gateway-transfers.ts';
import type { LedgerStore } from './ledger-port.ts';
import type { LightningStore } from './lightning-port.ts';
import type { MarketStore } from './market-port.ts';
import type { RelayerSpendingStore } from './relayer-spending.ts';
import type { SelfTestStore } from './selftest-port.ts';
import type { SettledReads } from './settled-reads.ts';

/** Everything that the ledger's database holds, whichever database that is. */
export interface LedgerStores {
  readonly payments: LedgerStore;
  readonly lightning: LightningStore;
  readonly transfers: GatewayTransferStore;
  readonly spending: RelayerSpendingStore;
  readonly selfTests: SelfTestStore;
  readonly market: MarketStore;
  readonly catalogue: CatalogueStore;
  readonly settled: SettledReads;
  /** Rejects when the ledger cannot be read, or would not take a write. */
  ping(): Promise<void>;
  /** Does what was asked for before; afterwards every store rejects. */
  close(): Promise<void>;
}
