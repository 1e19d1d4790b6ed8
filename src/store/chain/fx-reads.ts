import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import type { Sqlite } from '../sqlite/database.ts';
import { type ChainFacts, createChainFacts } from './facts.ts';

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
const COUNTED = `${WHERE} AND excluded IS NULL`;
const E9 = 1_000_000_000n;

const lastWhere = (which: string) =>
  `SELECT base_e9, usdc_e9, at, block, transaction_hash FROM trades WHERE ${which} AND excluded IS NULL
     ORDER BY at DESC, block DESC, log_index DESC LIMIT 1`;
const TOTALS = `SELECT count(*), ${SUMS} FROM trades WHERE ${COUNTED}`;
const EXCLUDED = `SELECT count(*) FROM trades WHERE ${WHERE} AND excluded IS NOT NULL`;
/** When min or max is the only aggregate, SQLite takes the other columns from the row of that value. */
const extreme = (which: 'min' | 'max') =>
  `SELECT base_e9, usdc_e9, ${which}(CAST(usdc_e9 AS REAL) / base_e9) FROM trades WHERE ${COUNTED}`;
/** The number of a trade's range is the number of bounds that it reaches. */
const sizes = (bounds: number) =>
  `SELECT ${new Array(bounds).fill('(usdc_e9 >= ?)').join(' + ')} AS size, count(*), ${SUMS}, total(abs(usdc_e9 - base_e9 * ?))
     FROM trades WHERE ${COUNTED} GROUP BY size`;
const VENUES = `SELECT venue, emitter, count(*), sum(usdc_e9 / 1000000000), sum(usdc_e9 % 1000000000) FROM trades JOIN pools ON pools.id = trades.pool
  WHERE trades.${COUNTED} GROUP BY venue, emitter`;

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
