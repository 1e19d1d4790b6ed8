// Rows as they are written. Hashes and addresses are bytes, times Unix seconds.

/** Of a watched token against USDC; amounts in 10^-9 of a whole token. */
export interface TradeRow {
  readonly block: number;
  readonly logIndex: number;
  readonly transactionHash: Uint8Array;
  readonly at: number;
  /** Its address, or a v4 pool id. */
  readonly pool: Uint8Array;
  readonly token: Uint8Array;
  readonly baseE9: bigint;
  readonly usdcE9: bigint;
  /** Why it does not count towards prices; null when it does. */
  readonly excluded: string | null;
  /** A buy takes the token out of the pool. */
  readonly side: 'buy' | 'sell';
  /** Null when its events do not say it. */
  readonly pricing: TradePricing | null;
}

/** In USDC for a whole token, without the pool's fee. */
interface TradePricing {
  readonly priceAfter: number;
  /** Null: that after the pool's trade before. */
  readonly priceBefore: number | null;
  /** What the pool trades with at the price after, as one of constant product. */
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
  /** What emits the swaps: the pool, or v4's pool manager. */
  readonly emitter: Uint8Array;
  readonly token: Uint8Array;
  readonly tokenFirst: boolean;
  readonly tokenDecimals: number;
  readonly usdcDecimals: number;
  readonly foundBlock: number;
}

/** What a created contract is, as bits; 0 is neither. */
export const DeployKinds = { token: 1, proxy: 2 } as const;

export interface DeployRow {
  readonly block: number;
  readonly at: number;
  readonly address: Uint8Array;
  readonly deployer: Uint8Array;
  readonly transactionHash: Uint8Array;
}

/** A transaction came from it, was addressed to it or created it. */
export interface AccountRow {
  readonly block: number;
  readonly at: number;
  readonly account: Uint8Array;
}

/** A transfer moved a watched token to or from it. */
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

/** From fee history; `at` is interpolated. */
export interface FeeRow {
  readonly number: number;
  readonly at: number;
  readonly baseFee: bigint;
  readonly utilisation: number;
}
