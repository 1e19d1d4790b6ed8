import type { PoolKind } from '../chain/dex.ts';

/** What the collector looks for in the chain's logs; addresses in lower case. */
export interface WatchList {
  /** Whose trades against USDC are collected. */
  readonly tokens: readonly { readonly symbol: string; readonly address: `0x${string}` }[];
  /** Whose pools count: factories, and v4's pool managers. */
  readonly venues: readonly { readonly kind: PoolKind; readonly address: `0x${string}`; readonly name: string }[];
  readonly usdc: `0x${string}`;
  readonly projectToken: `0x${string}` | null;
  /** Whose USDC transfers are the project's payouts. */
  readonly distributor: `0x${string}` | null;
  /** Where the project token is burned by sending it there. */
  readonly burnAddresses: readonly `0x${string}`[];
  /** Trades of less USDC do not count towards prices; in 10^-9 USDC. */
  readonly dustE9: bigint;
  /** Trades further from the running median do not count towards prices, in percent. */
  readonly outlierPercent: number;
}

/** Arc's nodes refuse more alternatives of the first topic (-32012); measured for that one, kept for all. */
export const MAX_ALTERNATIVES = 8;

/** The values in parts that a filter may name. */
export function inParts<T>(values: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(values.length / MAX_ALTERNATIVES) }, (_, part) =>
    values.slice(part * MAX_ALTERNATIVES, (part + 1) * MAX_ALTERNATIVES),
  );
}

/** The values as one position of a filter; null (any) when they are too many, and the reader must look for itself. */
export function alternatives<T>(values: readonly T[]): readonly T[] | null {
  return values.length <= MAX_ALTERNATIVES ? values : null;
}
