import type { PoolKind } from '../chain/dex.ts';

/** What the collector looks for in the chain's logs; addresses in lower case. */
export interface WatchList {
  /** Tokens whose trades against USDC are collected. */
  readonly tokens: readonly { readonly symbol: string; readonly address: `0x${string}` }[];
  /** Contracts whose pools count: factories, and v4's pool managers. */
  readonly venues: readonly { readonly kind: PoolKind; readonly address: `0x${string}`; readonly name: string }[];
  readonly usdc: `0x${string}`;
  readonly projectToken: `0x${string}` | null;
  /** The account whose USDC transfers are the project's payouts. */
  readonly distributor: `0x${string}` | null;
  /** Addresses that burn the project tokens sent to them. */
  readonly burnAddresses: readonly `0x${string}`[];
  /** Trades of less than this do not count towards prices; in 10^-9 USDC. */
  readonly dustE9: bigint;
  /** Trades further than this from the running median do not count towards prices; in percent. */
  readonly outlierPercent: number;
}

/** Arc's nodes refuse more alternatives of the first topic (-32012, measured). The code keeps the limit for every position. */
export const MAX_ALTERNATIVES = 8;

/** Splits the values into parts that fit a filter. */
export function inParts<T>(values: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(values.length / MAX_ALTERNATIVES) }, (_, part) =>
    values.slice(part * MAX_ALTERNATIVES, (part + 1) * MAX_ALTERNATIVES),
  );
}

/** The values as one position of a filter. Null (any) when they are too many; the caller must then filter the logs itself. */
export function alternatives<T>(values: readonly T[]): readonly T[] | null {
  return values.length <= MAX_ALTERNATIVES ? values : null;
}
