import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import type { Sqlite } from '../sqlite/database.ts';
import type { TradeWindow } from './fx-reads.ts';

/** Counted trades of one side in a range of sizes, against the price of their pools right before each. */
export interface CostTotals {
  /** The number of bounds that the trades reach: 0 below the first one. */
  readonly size: number;
  readonly side: 'buy' | 'sell';
  /** Trades whose pool's price before them is known. */
  readonly trades: number;
  /** What they paid above that price (buys), or got below it (sells), in 10^-9 USDC: the pool's fee and the price that they moved. */
  readonly costE9: number;
  /** What they traded at that price, in 10^-9 USDC. */
  readonly fairE9: number;
}

/** Counted trades in one pool, and the pool after its newest trade, counted or not. */
export interface PoolTotals {
  /** An address, or a v4 pool id. */
  readonly id: `0x${string}`;
  readonly venue: string;
  /** The contract that executed: the pool, or v4's pool manager. */
  readonly emitter: `0x${string}`;
  readonly trades: number;
  readonly usdcE9: bigint;
  /** Null when no event said it. */
  readonly state: PoolState | null;
}

/** A pool at a time. */
export interface PoolState {
  /** USDC for a whole token, without the pool's fee. */
  readonly price: number;
  /** USDC that it trades with at that price, as a pool of constant product. */
  readonly usdcReserve: number;
  /** Unix seconds. */
  readonly at: number;
}

/** What trades cost, and in which pools they were made. */
export interface ExecutionReads {
  /** Sizes by ascending bounds in 10^-9 USDC, as `tradesBySize` has them. A size or side without a measured trade is left out. */
  tradeCosts(window: TradeWindow, boundsE9: readonly bigint[]): CostTotals[];
  /** Largest volume first. */
  tradesByPool(window: TradeWindow): PoolTotals[];
}

const COUNTED = 'token = ? AND at > ? AND at <= ? AND excluded IS NULL';
const costs = (bounds: number) => `
  SELECT ${new Array(bounds).fill('(usdc_e9 >= ?)').join(' + ')} AS size, side, count(*) AS trades,
         total(CASE side WHEN 'buy' THEN usdc_e9 - base_e9 * price_before ELSE base_e9 * price_before - usdc_e9 END) AS costE9,
         total(base_e9 * price_before) AS fairE9
    FROM trades WHERE ${COUNTED} AND price_before IS NOT NULL GROUP BY size, side`;
/** A 64-bit sum of 10^-9 would overflow at nine billion USDC. Sums of the billions and of the rest do not. */
const POOLS = `
  SELECT pool, venue, emitter, trades, whole, rest FROM
    (SELECT pool, count(*) AS trades, sum(usdc_e9 / 1000000000) AS whole, sum(usdc_e9 % 1000000000) AS rest
       FROM trades WHERE ${COUNTED} GROUP BY pool) AS sums
  JOIN pools ON pools.id = sums.pool`;
const STATE = `
  SELECT price_after AS price, usdc_reserve AS usdcReserve, at FROM trades
   WHERE pool = ? AND price_after IS NOT NULL ORDER BY block DESC, log_index DESC LIMIT 1`;

interface PoolRow {
  readonly pool: Uint8Array;
  readonly venue: string;
  readonly emitter: Uint8Array;
  readonly trades: bigint;
  readonly whole: bigint;
  readonly rest: bigint;
}

export function createExecutionReads(db: Sqlite): ExecutionReads {
  const pools = db.prepare(POOLS).safeIntegers();
  const state = db.prepare(STATE);
  const keyOf = ({ token, after, to }: TradeWindow) => [hexToBytes(token), after, to] as const;
  return {
    tradeCosts: (window, bounds) => db.prepare(costs(bounds.length)).all(...bounds, ...keyOf(window)) as CostTotals[],
    tradesByPool: (window) =>
      (pools.all(...keyOf(window)) as PoolRow[])
        .map(({ pool, venue, emitter, trades, whole, rest }) => ({
          ...{ id: bytesToHex(pool), venue, emitter: bytesToHex(emitter), trades: Number(trades) },
          usdcE9: whole * 1_000_000_000n + rest,
          state: (state.get(pool) as PoolState | undefined) ?? null,
        }))
        .sort((a, b) => (a.usdcE9 === b.usdcE9 ? (a.id < b.id ? -1 : 1) : a.usdcE9 > b.usdcE9 ? -1 : 1)),
  };
}
