import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import type { Sqlite } from '../../lib/sqlite-file.ts';
import { type ChainFacts, createChainFacts } from './facts.ts';
import type { PoolRow } from './rows.ts';

// Trades of watched tokens against USDC, and their pools: for the scanner, by a pool's id, and of a window (rates,
// sizes, venues; costs). Amounts are 10^-9 of a whole token, times Unix seconds.

export interface Quote {
  /** USDC for a whole token. */
  readonly price: number;
  readonly transactionHash: string;
}

/** One side of a span. `at` is the time of the span's end there. */
export interface Beside {
  readonly token: Uint8Array;
  readonly block: number;
  readonly at: number;
  readonly limit: number;
}

/** Safe inside the collector's transaction. */
export interface TradeReads {
  pools(): PoolRow[];
  /** Without dust, nearest first. */
  before(beside: Beside): Quote[];
  after(beside: Beside): Quote[];
}

const QUOTE = `
  SELECT CAST(usdc_e9 AS REAL) / base_e9 AS price, transaction_hash AS hash FROM trades
   WHERE token = ? AND (excluded IS NULL OR excluded <> 'dust')`;
/** By time first, for the index; times and blocks grow together. */
const BEFORE = `${QUOTE} AND at <= ? AND block < ? ORDER BY at DESC, block DESC, log_index DESC LIMIT ?`;
const AFTER = `${QUOTE} AND at >= ? AND block > ? ORDER BY at, block, log_index LIMIT ?`;
const POOLS = `
  SELECT id, venue, kind, emitter, token, token_first AS tokenFirst, token_decimals AS tokenDecimals,
         usdc_decimals AS usdcDecimals, found_block AS foundBlock
    FROM pools ORDER BY found_block, id`;

export function createTradeReads(db: Sqlite): TradeReads {
  const statements = { before: db.prepare(BEFORE), after: db.prepare(AFTER), pools: db.prepare(POOLS) };
  const quotes = (rows: unknown[]): Quote[] =>
    (rows as { price: number; hash: Uint8Array }[]).map(({ price, hash }) => ({
      price,
      transactionHash: bytesToHex(hash),
    }));
  return {
    pools: () =>
      (statements.pools.all() as (Omit<PoolRow, 'tokenFirst'> & { tokenFirst: number })[]).map((row) => ({
        ...row,
        tokenFirst: row.tokenFirst === 1,
      })),
    before: ({ token, at, block, limit }) => quotes(statements.before.all(token, at, block, limit)),
    after: ({ token, at, block, limit }) => quotes(statements.after.all(token, at, block, limit)),
  };
}

export interface CollectedPool extends Pick<PoolRow, 'venue' | 'kind' | 'tokenFirst' | 'usdcDecimals'> {
  readonly emitter: `0x${string}`;
  readonly token: `0x${string}`;
}

export interface PoolReads {
  /** By its address, or its v4 pool id. */
  pool(id: `0x${string}`): CollectedPool | null;
}

type StoredPool = Omit<CollectedPool, 'tokenFirst' | 'emitter' | 'token'> & {
  readonly tokenFirst: number;
  readonly emitter: Uint8Array;
  readonly token: Uint8Array;
};

export function createPoolReads(db: Sqlite): PoolReads {
  const byId = db.prepare(
    `SELECT venue, kind, emitter, token, token_first AS tokenFirst, usdc_decimals AS usdcDecimals
       FROM pools WHERE id = ?`,
  );
  return {
    pool(id) {
      const row = byId.get(hexToBytes(id)) as StoredPool | undefined;
      if (row === undefined) return null;
      const { emitter, token, tokenFirst } = row;
      return { ...row, emitter: bytesToHex(emitter), token: bytesToHex(token), tokenFirst: tokenFirst === 1 };
    },
  };
}

export interface Amounts {
  readonly baseE9: bigint;
  readonly usdcE9: bigint;
}

export interface LastTrade extends Amounts {
  readonly at: number;
  readonly block: number;
  readonly transaction: `0x${string}`;
}

/** Counted trades, and those of the lowest and highest rate. */
export interface WindowTotals extends Amounts {
  readonly trades: number;
  readonly excluded: number;
  readonly low: Amounts | null;
  readonly high: Amounts | null;
  /** Every block of the window was searched. */
  readonly complete: boolean;
}

/** Counted trades; `distanceE9` sums their distances from the reference rate, in 10^-9 USDC. */
export interface SizeTotals extends Amounts {
  readonly trades: number;
  readonly distanceE9: number;
}

export interface VenueTotals {
  readonly name: string;
  readonly address: `0x${string}`;
  readonly trades: number;
  readonly usdcE9: bigint;
}

/** `to` is included, `after` not. */
export interface TradeWindow {
  readonly token: `0x${string}`;
  readonly after: number;
  readonly to: number;
}

export interface FxReads {
  lastTrade(token: `0x${string}`): LastTrade | null;
  /** At or before a time. Null also when blocks after it were not searched: one may be missing. */
  tradeAsOf(token: `0x${string}`, at: number): LastTrade | null;
  tradesIn(window: TradeWindow): WindowTotals;
  /** Below the first bound, from there to the next, and so on. `referenceRate` is in USDC a token. */
  tradesBySize(window: TradeWindow, boundsE9: readonly bigint[], referenceRate: number): SizeTotals[];
  /** Largest volume first. */
  tradesByVenue(window: TradeWindow): VenueTotals[];
}

/** A 64-bit sum of 10^-9 overflows at nine billion tokens; sums of the billions and of the rest do not. */
const USDC_SUMS = 'sum(usdc_e9 / 1000000000), sum(usdc_e9 % 1000000000)';
const SUMS = `sum(base_e9 / 1000000000), sum(base_e9 % 1000000000), ${USDC_SUMS}`;
const WHERE = 'token = ? AND at > ? AND at <= ?';
const COUNTED = `${WHERE} AND excluded IS NULL`;
const E9 = 1_000_000_000n;

const lastWhere = (which: string) =>
  `SELECT base_e9, usdc_e9, at, block, transaction_hash FROM trades WHERE ${which} AND excluded IS NULL
     ORDER BY at DESC, block DESC, log_index DESC LIMIT 1`;
const TOTALS = `SELECT count(*), ${SUMS} FROM trades WHERE ${COUNTED}`;
const EXCLUDED = `SELECT count(*) FROM trades WHERE ${WHERE} AND excluded IS NOT NULL`;
/** SQLite takes the other columns from the row of a lone min or max. */
const extreme = (which: 'min' | 'max') =>
  `SELECT base_e9, usdc_e9, ${which}(CAST(usdc_e9 AS REAL) / base_e9) FROM trades WHERE ${COUNTED}`;
/** A range is numbered by the bounds that its trades reach. */
const sizes = (bounds: number) =>
  `SELECT ${new Array(bounds).fill('(usdc_e9 >= ?)').join(' + ')} AS size, count(*), ${SUMS},
          total(abs(usdc_e9 - base_e9 * ?))
     FROM trades WHERE ${COUNTED} GROUP BY size`;
const VENUES = `SELECT venue, emitter, count(*), ${USDC_SUMS} FROM trades JOIN pools ON pools.id = trades.pool
  WHERE trades.${COUNTED} GROUP BY venue, emitter`;
const keyOf = ({ token, after, to }: TradeWindow) => [hexToBytes(token), after, to] as const;

type Sums = readonly (bigint | null)[];

export function createFxReads(db: Sqlite): FxReads {
  const prepare = (sql: string) => db.prepare(sql).raw().safeIntegers();
  const statements = {
    last: prepare(lastWhere('token = ?')),
    asOf: prepare(lastWhere('token = ? AND at <= ?')),
    totals: prepare(TOTALS),
    excluded: prepare(EXCLUDED),
    low: prepare(extreme('min')),
    high: prepare(extreme('max')),
    venues: prepare(VENUES),
  };
  const facts = createChainFacts(db);

  const pick = (row: unknown): Amounts | null => {
    const [baseE9, usdcE9] = row as [bigint | null, bigint | null];
    return baseE9 === null || usdcE9 === null ? null : { baseE9, usdcE9 };
  };
  return {
    lastTrade: (token) => toTrade(statements.last.get(hexToBytes(token))),
    tradeAsOf(token, at) {
      const trade = toTrade(statements.asOf.get(hexToBytes(token), at));
      const searched = facts.coverage('logs').at(-1);
      return trade !== null && searched !== undefined && searched.from <= trade.block ? trade : null;
    },
    tradesIn(window) {
      const key = keyOf(window);
      const [trades, ...sums] = statements.totals.get(...key) as [bigint, ...Sums];
      const [excluded] = statements.excluded.get(...key) as [bigint];
      return {
        trades: Number(trades),
        excluded: Number(excluded),
        ...amountsOf(sums),
        low: pick(statements.low.get(...key)),
        high: pick(statements.high.get(...key)),
        complete: isSearched(facts, window.after),
      };
    },
    tradesBySize(window, boundsE9, referenceRate) {
      const rows = prepare(sizes(boundsE9.length)).all(...boundsE9, referenceRate, ...keyOf(window)) as unknown[][];
      const bySize = new Map(rows.map((row) => [Number(row[0]), row]));
      return [0n, ...boundsE9].map((_, size) => {
        const row = bySize.get(size) ?? [size, 0n, 0n, 0n, 0n, 0n, 0];
        return { trades: Number(row[1]), ...amountsOf(row.slice(2, 6) as Sums), distanceE9: row[6] as number };
      });
    },
    tradesByVenue: (window) =>
      (statements.venues.all(...keyOf(window)) as [string, Uint8Array, bigint, bigint, bigint][])
        .map(([name, emitter, trades, billions, rest]) => ({
          name,
          address: bytesToHex(emitter),
          trades: Number(trades),
          usdcE9: billions * E9 + rest,
        }))
        .sort((a, b) => (a.usdcE9 === b.usdcE9 ? 0 : a.usdcE9 > b.usdcE9 ? -1 : 1)),
  };
}

function toTrade(row: unknown): LastTrade | null {
  if (row === undefined) return null;
  const [baseE9, usdcE9, at, block, hash] = row as [bigint, bigint, bigint, bigint, Uint8Array];
  return { baseE9, usdcE9, at: Number(at), block: Number(block), transaction: bytesToHex(hash) };
}

function amountsOf([baseBillions, baseRest, usdcBillions, usdcRest]: Sums): Amounts {
  return { baseE9: (baseBillions ?? 0n) * E9 + (baseRest ?? 0n), usdcE9: (usdcBillions ?? 0n) * E9 + (usdcRest ?? 0n) };
}

/** Whether the newest unbroken searched span reaches back to a time, or to the chain's beginning. */
function isSearched(facts: ChainFacts, after: number): boolean {
  const from = facts.coverage('logs').at(-1)?.from;
  if (from === undefined) return false;
  return from <= 1 || (facts.placeOf(from)?.at ?? Number.POSITIVE_INFINITY) <= after;
}

/** Counted trades against the price of their pools right before each. */
export interface CostTotals {
  /** The bounds that the trades reach: 0 below the first. */
  readonly size: number;
  readonly side: 'buy' | 'sell';
  /** Whose pool's price before them is known. */
  readonly trades: number;
  /** What they paid above that price, or got below it: the pool's fee and the price that they moved. */
  readonly costE9: number;
  /** What they traded, at that price. */
  readonly fairE9: number;
}

/** Counted trades; `state` is after the newest trade, counted or not. */
export interface PoolTotals {
  readonly id: `0x${string}`;
  readonly venue: string;
  readonly emitter: `0x${string}`;
  readonly trades: number;
  readonly usdcE9: bigint;
  /** Null when no event said it. */
  readonly state: PoolState | null;
}

interface PoolState {
  /** USDC for a whole token, without the pool's fee. */
  readonly price: number;
  /** What it trades with at that price, as a pool of constant product. */
  readonly usdcReserve: number;
  readonly at: number;
}

export interface ExecutionReads {
  /** Without sizes or sides that have no measured trade. */
  tradeCosts(window: TradeWindow, boundsE9: readonly bigint[]): CostTotals[];
  /** Largest volume first. */
  tradesByPool(window: TradeWindow): PoolTotals[];
}

const costsBySize = (bounds: number) => `
  SELECT ${new Array(bounds).fill('(usdc_e9 >= ?)').join(' + ')} AS size, side, count(*) AS trades,
         total(CASE side WHEN 'buy' THEN usdc_e9 - base_e9 * price_before
                         ELSE base_e9 * price_before - usdc_e9 END) AS costE9,
         total(base_e9 * price_before) AS fairE9
    FROM trades WHERE ${COUNTED} AND price_before IS NOT NULL GROUP BY size, side`;
const POOL_SUMS = `
  SELECT pool, venue, emitter, trades, whole, rest FROM
    (SELECT pool, count(*) AS trades, sum(usdc_e9 / 1000000000) AS whole, sum(usdc_e9 % 1000000000) AS rest
       FROM trades WHERE ${COUNTED} GROUP BY pool) AS sums
  JOIN pools ON pools.id = sums.pool`;
const STATE = `
  SELECT price_after AS price, usdc_reserve AS usdcReserve, at FROM trades
   WHERE pool = ? AND price_after IS NOT NULL ORDER BY block DESC, log_index DESC LIMIT 1`;

type PoolSums = Record<'pool' | 'emitter', Uint8Array> &
  Record<'trades' | 'whole' | 'rest', bigint> & { venue: string };

export function createExecutionReads(db: Sqlite): ExecutionReads {
  const pools = db.prepare(POOL_SUMS).safeIntegers();
  const state = db.prepare(STATE);
  return {
    tradeCosts: (window, bounds) =>
      db.prepare(costsBySize(bounds.length)).all(...bounds, ...keyOf(window)) as CostTotals[],
    tradesByPool: (window) =>
      (pools.all(...keyOf(window)) as PoolSums[])
        .map(({ pool, venue, emitter, trades, whole, rest }) => ({
          id: bytesToHex(pool),
          venue,
          emitter: bytesToHex(emitter),
          trades: Number(trades),
          usdcE9: whole * E9 + rest,
          state: (state.get(pool) as PoolState | undefined) ?? null,
        }))
        .sort((a, b) => (a.usdcE9 === b.usdcE9 ? (a.id < b.id ? -1 : 1) : a.usdcE9 > b.usdcE9 ? -1 : 1)),
  };
}
