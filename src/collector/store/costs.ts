import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import type { Histogram } from '../../lib/percentile.ts';
import type { Sqlite } from '../../lib/sqlite-file.ts';
import { type ChainFacts, createChainFacts } from './facts.ts';

/** What a transaction does, as its own fields show it. */
export type OperationKind = 'deploy' | 'nativeTransfer' | 'tokenTransfer' | 'contractCall';

/** What one mined transaction cost. */
export interface OperationCost {
  readonly kind: OperationKind;
  /** Unix seconds of its block. */
  readonly at: number;
  readonly gasUsed: number;
  /** Per gas, in wei. */
  readonly effectiveGasPrice: bigint;
  /** The base fee of its block, in wei. */
  readonly baseFee: bigint;
}

/** Writer of `operation_costs` and `tips`. */
interface OperationCosts {
  /** Counts them inside the caller's transaction, or in its own. Callers may count a block twice, because that shifts no percentile. */
  record(costs: readonly OperationCost[]): void;
  /** Deletes hours that began before `before` (Unix seconds). */
  prune(before: number): void;
}

const HOUR = 3600;
/** Wei in 10^-9 of the native currency. */
const WEI_PER_E9 = 1_000_000_000n;

const ADD = `
  INSERT INTO operation_costs (at, kind, measure, value, count) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (at, kind, measure, value) DO UPDATE SET count = count + excluded.count`;

const ADD_TIP = `
  INSERT INTO tips (at, wei, count) VALUES (?, ?, ?) ON CONFLICT (at, wei) DO UPDATE SET count = count + excluded.count`;
/** Far above any tip, and below the largest integer of the database. */
const MAX_TIP = 10n ** 18n;

/** Adds up equal values first, so that thousands of transactions of a span are some dozen statements. */
export function createOperationCosts(db: Sqlite): OperationCosts {
  const add = db.prepare(ADD);
  const addTip = db.prepare(ADD_TIP);
  const prune = ['operation_costs', 'tips'].map((table) => db.prepare(`DELETE FROM ${table} WHERE at < ?`));
  const record = db.transaction((costs: readonly OperationCost[]) => {
    const counts = new Map<string, number>();
    const tips = new Map<string, number>();
    for (const { kind, at, gasUsed, effectiveGasPrice, baseFee } of costs) {
      const hour = Math.floor(at / HOUR) * HOUR;
      const feeE9 = Number((BigInt(gasUsed) * effectiveGasPrice) / WEI_PER_E9);
      for (const key of [`${hour} ${kind} gas ${rounded(gasUsed)}`, `${hour} ${kind} fee ${rounded(feeE9)}`]) {
        counts.set(key, (counts.get(key) ?? 0) + 1);
      }
      const tip = `${hour} ${rounded(Number(tipOf(effectiveGasPrice, baseFee)))}`;
      tips.set(tip, (tips.get(tip) ?? 0) + 1);
    }
    for (const [key, count] of counts) {
      const [hour, kind, measure, value] = key.split(' ');
      add.run(Number(hour), kind, measure, Number(value), count);
    }
    for (const [key, count] of tips) addTip.run(...key.split(' ').map(BigInt), count);
  });
  return {
    record: (costs) => void record(costs),
    prune: (before) => {
      for (const statement of prune) statement.run(before);
    },
  };
}

function tipOf(price: bigint, baseFee: bigint): bigint {
  const tip = price > baseFee ? price - baseFee : 0n;
  return tip < MAX_TIP ? tip : MAX_TIP;
}

/** Three significant digits: at most half a percent off. */
function rounded(value: number): number {
  const step = 10 ** Math.max(String(value).length - 3, 0);
  return Math.round(value / step) * step;
}

/** Reader of `operation_costs` and `tips`. */
export interface CostReads {
  /** Values of a kind of operation seen in hours from `from` on (Unix seconds). */
  costs(kind: OperationKind, measure: 'gas' | 'fee', from: number): Histogram;
  /** Priority fees that transactions paid in hours from `from` on (Unix seconds), in wei a gas. */
  tips(from: number): Histogram;
}

export function createCostReads(db: Sqlite): CostReads {
  const select = db
    .prepare('SELECT value, sum(count) FROM operation_costs WHERE at >= ? AND kind = ? AND measure = ? GROUP BY value')
    .raw()
    .safeIntegers();
  const selectTips = db.prepare('SELECT wei, sum(count) FROM tips WHERE at >= ? GROUP BY wei').raw().safeIntegers();
  return {
    tips: (from) => {
      const rows = selectTips.all(Math.floor(from / HOUR) * HOUR) as [bigint, bigint][];
      return new Map(rows.map(([wei, count]) => [wei, Number(count)]));
    },
    costs: (kind, measure, from) => {
      const rows = select.all(Math.floor(from / HOUR) * HOUR, kind, measure) as [bigint, bigint][];
      return new Map(rows.map(([value, count]) => [value, Number(count)]));
    },
  };
}

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
interface PoolState {
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
          id: bytesToHex(pool),
          venue,
          emitter: bytesToHex(emitter),
          trades: Number(trades),
          usdcE9: whole * 1_000_000_000n + rest,
          state: (state.get(pool) as PoolState | undefined) ?? null,
        }))
        .sort((a, b) => (a.usdcE9 === b.usdcE9 ? (a.id < b.id ? -1 : 1) : a.usdcE9 > b.usdcE9 ? -1 : 1)),
  };
}

/** Amounts of trades in 10^-9 of a whole token: `usdcE9` / `baseE9` is a rate. */
export interface Amounts {
  readonly baseE9: bigint;
  readonly usdcE9: bigint;
}

/** The newest counted trade of a token. */
export interface LastTrade extends Amounts {
  readonly at: number;
  readonly block: number;
  readonly transaction: `0x${string}`;
}

/** The counted trades of a window; `low` and `high` are the trades of the lowest and highest rate. */
export interface WindowTotals extends Amounts {
  readonly trades: number;
  /** Trades left out as dust or outliers. */
  readonly excluded: number;
  readonly low: Amounts | null;
  readonly high: Amounts | null;
  /** Whether every block of the window was searched for trades. */
  readonly complete: boolean;
}

/** Counted trades of a range of sizes, with the sum of the distances of each from the reference rate, in 10^-9 USDC. */
export interface SizeTotals extends Amounts {
  readonly trades: number;
  readonly distanceE9: number;
}

/** Counted trades of a contract that emits swaps. */
export interface VenueTotals {
  readonly name: string;
  readonly address: `0x${string}`;
  readonly trades: number;
  readonly usdcE9: bigint;
}

/** A token's trades after `after` and up to `to`, both Unix seconds. */
export interface TradeWindow {
  readonly token: `0x${string}`;
  readonly after: number;
  readonly to: number;
}

/** Executed trades of watched tokens against USDC. */
export interface FxReads {
  lastTrade(token: `0x${string}`): LastTrade | null;
  /** The newest trade at or before a time. Null without one, and when blocks after it were not searched, because a newer one may be missing. */
  tradeAsOf(token: `0x${string}`, at: number): LastTrade | null;
  tradesIn(window: TradeWindow): WindowTotals;
  /** The trades below the first bound, from there to the next, and so on; bounds ascend, in 10^-9 USDC. `referenceRate` is in USDC a token. */
  tradesBySize(window: TradeWindow, boundsE9: readonly bigint[], referenceRate: number): SizeTotals[];
  /** Largest volume first. */
  tradesByVenue(window: TradeWindow): VenueTotals[];
}

/** A 64-bit sum of 10^-9 would overflow at nine billion tokens. Sums of the billions and of the rest do not. */
const SUMS = `sum(base_e9 / 1000000000), sum(base_e9 % 1000000000), sum(usdc_e9 / 1000000000), sum(usdc_e9 % 1000000000)`;
const WHERE = 'token = ? AND at > ? AND at <= ?';
const COUNTED_TRADES = `${WHERE} AND excluded IS NULL`;
const E9 = 1_000_000_000n;

const lastWhere = (which: string) =>
  `SELECT base_e9, usdc_e9, at, block, transaction_hash FROM trades WHERE ${which} AND excluded IS NULL
     ORDER BY at DESC, block DESC, log_index DESC LIMIT 1`;
const TOTALS = `SELECT count(*), ${SUMS} FROM trades WHERE ${COUNTED_TRADES}`;
const EXCLUDED = `SELECT count(*) FROM trades WHERE ${WHERE} AND excluded IS NOT NULL`;
/** When min or max is the only aggregate, SQLite takes the other columns from the row of that value. */
const extreme = (which: 'min' | 'max') =>
  `SELECT base_e9, usdc_e9, ${which}(CAST(usdc_e9 AS REAL) / base_e9) FROM trades WHERE ${COUNTED_TRADES}`;
/** The number of a trade's range is the number of bounds that it reaches. */
const sizes = (bounds: number) =>
  `SELECT ${new Array(bounds).fill('(usdc_e9 >= ?)').join(' + ')} AS size, count(*), ${SUMS}, total(abs(usdc_e9 - base_e9 * ?))
     FROM trades WHERE ${COUNTED_TRADES} GROUP BY size`;
const VENUES = `SELECT venue, emitter, count(*), sum(usdc_e9 / 1000000000), sum(usdc_e9 % 1000000000) FROM trades JOIN pools ON pools.id = trades.pool
  WHERE trades.${COUNTED_TRADES} GROUP BY venue, emitter`;

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
  const isSearched = createSearched(db, facts);
  const keyOf = ({ token, after, to }: TradeWindow) => [hexToBytes(token), after, to] as const;

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
        complete: isSearched(window.after),
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
  return {
    baseE9: (baseBillions ?? 0n) * E9 + (baseRest ?? 0n),
    usdcE9: (usdcBillions ?? 0n) * E9 + (usdcRest ?? 0n),
  };
}

/** Whether the newest unbroken span of searched blocks reaches back to a time, or to the chain's beginning. */
function createSearched(db: Sqlite, facts: ChainFacts): (after: number) => boolean {
  const at = db.prepare('SELECT at FROM blocks WHERE number = ?').pluck();
  return (after) => {
    const span = facts.coverage('logs').at(-1);
    if (span === undefined) return false;
    if (span.from <= 1) return true;
    const from = at.get(span.from) as number | undefined;
    return from !== undefined && from <= after;
  };
}
