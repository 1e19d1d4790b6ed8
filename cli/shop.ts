import type { Env } from './keys.ts';
import type { LightningPayer } from './payers/payer.ts';
import type { BuyerSettings, Call, Limits } from './port.ts';
import type { OwnRate } from './rate.ts';
import type { Seller } from './seller.ts';
import type { Holder, Wallet } from './wallet/record.ts';

/** What calls are bought with. `openBuyer` makes one. */
export interface Shop {
  readonly settings: BuyerSettings;
  readonly wallet: Wallet;
  readonly ownRate: OwnRate;
  readonly sellerOf: (call: Call) => Seller;
  /** Opens the Lightning wallet that the environment names; null without one. */
  readonly payerFrom: (env: Env) => Promise<LightningPayer | null>;
  /** This process, for the rows that it holds. */
  readonly holder: Holder;
  /** Unix seconds. */
  readonly now: () => number;
  readonly delay: (ms: number) => Promise<void>;
  /** The folder with the channels' records. */
  readonly channelFolder: string;
}

/** A call that is being bought. */
export interface Buying {
  readonly call: Call;
  readonly seller: Seller;
  readonly callHash: string;
  readonly limits: Limits;
  readonly shop: Shop;
  readonly key: `0x${string}` | null;
  /** By which this call holds its row. */
  readonly me: string;
  /** Opened when it is needed. */
  readonly payer: () => Promise<LightningPayer | null>;
}
