// Rows of the chain database as they are written. Hashes and addresses are bytes, times Unix seconds.

/** An executed trade of a watched token against USDC; amounts in 10^-9 of a whole token. */
export interface TradeRow {
  readonly block: number;
  readonly logIndex: number;
  readonly transactionHash: Uint8Array;
  readonly at: number;
  /** The pool's id: its address, or a v4 pool id. */
  readonly pool: Uint8Array;
  readonly token: Uint8Array;
  readonly baseE9: bigint;
  readonly usdcE9: bigint;
  /** Why it does not count towards prices; null when it does. */
  readonly excluded: string | null;
  /** Who traded: a buy takes the token out of the pool. */
  readonly side: 'buy' | 'sell';
  /** What it did to the pool; null when its events do not say it. */
  readonly pricing: TradePricing | null;
}

/** The pool's price beside a trade, in USDC for a whole token, without the pool's fee. */
interface TradePricing {
  readonly priceAfter: number;
  /** Null: the price after the trade before it in the same pool. */
  readonly priceBefore: number | null;
  /** USDC that the pool trades with at the price after it, as a pool of constant product. */
  readonly usdcReserve: number;
}

export interface TokenEventRow {
  readonly block: number;
  readonly logIndex: number;
  readonly transactionHash: Uint8Array;
  readonly at: number;
  readonly kind: 'burn' | 'payout';
  readonly account: Uint8Array;
  /** Base units. */
  readonly amount: bigint;
}

export interface PoolRow {
  readonly id: Uint8Array;
  readonly venue: string;
  readonly kind: 'v2' | 'v3' | 'v4' | 'slipstream';
  /** The contract that emits the swaps: the pool itself, or v4's pool manager. */
  readonly emitter: Uint8Array;
  readonly token: Uint8Array;
  readonly tokenFirst: boolean;
  readonly tokenDecimals: number;
  readonly usdcDecimals: number;
  readonly foundBlock: number;
}

/** What a created contract is, as bits of a number; 0 is neither. */
export const DeployKinds = { token: 1, proxy: 2 } as const;

export interface DeployRow {
  readonly block: number;
  readonly at: number;
  readonly address: Uint8Array;
  readonly deployer: Uint8Array;
  readonly transactionHash: Uint8Array;
}

/** An account that a transaction of a block came from, was addressed to or created. */
export interface AccountRow {
  readonly block: number;
  readonly at: number;
  readonly account: Uint8Array;
}

/** An account that a transfer moved a watched token to or from. */
export interface TokenAccountRow extends AccountRow {
  readonly token: Uint8Array;
}

export interface BlockRow {
  readonly number: number;
  readonly at: number;
  readonly hash: Uint8Array;
  readonly parentHash: Uint8Array;
  readonly baseFee: bigint;
  readonly nextBaseFee: bigint | null;
  /** 0 to 1. */
  readonly utilisation: number;
  readonly gasLimit: bigint;
  readonly transactions: number;
  readonly deploys: number;
  readonly nativeTransfers: number;
  readonly tokenTransfers: number;
  readonly contractCalls: number;
}

/** A block whose fee and gas use come from fee history; its time is interpolated. */
export interface FeeRow {
  readonly number: number;
  readonly at: number;
  readonly baseFee: bigint;
  readonly utilisation: number;
}
