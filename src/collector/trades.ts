import { decodeSwap, readPoolPrice, toTrade } from '../chain/dex.ts';
import { hexToBytes } from '../lib/hex.ts';
import type { TradeRow } from '../store/chain/rows.ts';
import type { Beside, TradeReads } from '../store/chain/trade-reads.ts';
import type { LogScanner, LogSpan, ScanLog } from './log-scanner.ts';
import { createPoolBook, type PoolBook } from './pools.ts';
import { filterTrades, WINDOW } from './trade-filter.ts';
import type { WatchList } from './watch-list.ts';

/** What the trade scanner needs. */
export interface TradeScannerParts {
  readonly watch: WatchList;
  readonly reads: TradeReads;
  readonly log?: { warn(fields: Record<string, unknown>, message: string): void };
}

/** Stored trades to read on each side: more than the window, because a transaction has one vote. */
const NEIGHBOURS = 3 * WINDOW;

/** Raise it when a change makes the same logs give other rows, so that stored blocks are scanned again. */
const VERSION = 2;

/**
 * Reads executed trades of the watched tokens against USDC, and the pools of these trades.
 * The same logs give the same rows, except for `excluded`, which depends on the neighbouring trades that are stored when a span is read.
 */
export function createTradeScanner({ watch, reads, log }: TradeScannerParts): LogScanner {
  const book = createPoolBook(watch, reads, (message) => log?.warn({}, message));
  return {
    key: keyOf(watch),
    filters: book.filters,
    prepare: book.prepare,
    scan(span) {
      const learned = book.learn(span);
      const rows = span.logs.flatMap((entry, at) => readTrade(entry, span.logs[at - 1], book) ?? []);
      return { ...learned, trades: filterByToken(rows, span, watch, reads) };
    },
  };
}

function keyOf({ tokens, venues, usdc, dustE9, outlierPercent }: WatchList): string {
  const watched = tokens.map(({ address }) => address).sort();
  const places = venues.map(({ kind, address }) => `${kind}:${address}`).sort();
  return ['trades', VERSION, usdc, ...watched, ...places, dustE9, outlierPercent].join(' ');
}

/** The trade that a log reports, if any. `before` is the log before it among those that the scanner asks for. */
function readTrade(entry: ScanLog, before: ScanLog | undefined, book: PoolBook): TradeRow | null {
  const pool = book.poolOf(entry);
  const deltas = pool && decodeSwap(pool.kind, entry);
  const trade = deltas && toTrade(deltas, pool);
  if (!trade) return null;
  const { block, logIndex, at, transactionHash } = entry;
  const beside = before?.block === block && before.logIndex === logIndex - 1 ? before : undefined;
  const tokenIn = pool.tokenFirst ? deltas.amount0 : deltas.amount1;
  return {
    ...{ block, logIndex, at, transactionHash: hexToBytes(transactionHash) },
    ...{ pool: pool.idBytes, token: hexToBytes(pool.token), ...trade, excluded: null },
    side: tokenIn < 0n ? 'buy' : 'sell',
    pricing: readPoolPrice(pool.kind, entry, deltas, beside, pool),
  };
}

/** Filters each token's trades against that token's neighbouring trades. Keeps the order of the rows. */
function filterByToken(
  rows: readonly TradeRow[],
  { from, to }: LogSpan,
  watch: WatchList,
  reads: TradeReads,
): TradeRow[] {
  const byToken = Map.groupBy(rows, ({ token }) => Buffer.from(token).toString('hex'));
  const verdicts = new Map<TradeRow, string | null>();
  for (const own of byToken.values()) {
    const [first, last] = [own[0], own.at(-1)];
    if (!first || !last) continue;
    const beside = (row: TradeRow, block: number): Beside => ({
      token: row.token,
      block,
      at: row.at,
      limit: NEIGHBOURS,
    });
    const candidates = own.map(({ baseE9, usdcE9, transactionHash }) => ({
      price: Number(usdcE9) / Number(baseE9),
      usdcE9,
      transactionHash: `0x${Buffer.from(transactionHash).toString('hex')}`,
    }));
    const found = filterTrades(candidates, reads.before(beside(first, from)), reads.after(beside(last, to)), watch);
    for (const [at, row] of own.entries()) verdicts.set(row, found[at] ?? null);
  }
  return rows.map((row) => ({ ...row, excluded: verdicts.get(row) ?? null }));
}
