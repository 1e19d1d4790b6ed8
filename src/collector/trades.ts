import { type BlockLog, type LogQuery, readBlockNumber } from '../chain/block.ts';
import {
  CREATION_TOPIC,
  type CreatedPool,
  decodeCreation,
  decodeSwap,
  NATIVE_CURRENCY,
  type PoolKind,
  type PoolSides,
  readPoolPrice,
  SWAP_TOPIC,
  SYNC_TOPIC,
  toTrade,
} from '../chain/dex.ts';
import { askForPools } from '../chain/dex-ask.ts';
import { readTokens } from '../chain/erc20.ts';
import type { ChainClient } from '../chain/rpc/client.ts';
import type { Log } from '../lib/common.ts';
import { bytesToHex, hexToBytes } from '../lib/hex.ts';
import { NATIVE_DECIMALS } from '../lib/units.ts';
import { alternatives, inParts, type LogScanner, type LogSpan, toTopic, type WatchList } from './scanner.ts';
import type { PoolRow, TradeRow } from './store/rows.ts';
import type { Beside, Quote, TradeReads } from './store/trades.ts';

// Trades of the watched tokens against USDC in known and learned pools. Dust and outliers do not make prices.

/** Raise it when the same logs give other rows, so that stored blocks are scanned again. */
const VERSION = 2;

/** The same logs give the same rows, but for `excluded`, which depends on the neighbours stored then. */
export function createTradeScanner(watch: WatchList, reads: TradeReads, log?: Pick<Log, 'warn'>): LogScanner {
  const book = createPoolBook(watch, reads, log);
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

/** `before` is the log before among those that the scanner asks for. */
function readTrade(entry: BlockLog, before: BlockLog | undefined, book: PoolBook): TradeRow | null {
  const pool = book.poolOf(entry);
  const deltas = pool && decodeSwap(pool.kind, entry);
  const trade = deltas && toTrade(deltas, pool);
  if (!trade) return null;
  const { block, logIndex, at, transactionHash } = entry;
  const beside = before?.block === block && before.logIndex === logIndex - 1 ? before : undefined;
  const tokenIn = pool.tokenFirst ? deltas.amount0 : deltas.amount1;
  return {
    block,
    logIndex,
    at,
    transactionHash: hexToBytes(transactionHash),
    pool: pool.idBytes,
    token: hexToBytes(pool.token),
    ...trade,
    excluded: null,
    side: tokenIn < 0n ? 'buy' : 'sell',
    pricing: readPoolPrice(pool.kind, entry, deltas, beside, pool),
  };
}

/** A trade is compared with so many others; odd, so that one is the median. Some minutes of Arc's EURC. */
export const WINDOW = 21;
/** Read on each side: more than the window, because a transaction has one vote. */
const NEIGHBOURS = 3 * WINDOW;
const MIN_WINDOW = 3;

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
    const beside = ({ token, at }: TradeRow, block: number): Beside => ({ token, block, at, limit: NEIGHBOURS });
    const candidates = own.map(({ baseE9, usdcE9, transactionHash }) => ({
      price: Number(usdcE9) / Number(baseE9),
      usdcE9,
      transactionHash: bytesToHex(transactionHash),
    }));
    const found = filterTrades(candidates, reads.before(beside(first, from)), reads.after(beside(last, to)), watch);
    for (const [at, row] of own.entries()) verdicts.set(row, found[at] ?? null);
  }
  return rows.map((row) => ({ ...row, excluded: verdicts.get(row) ?? null }));
}

export interface Candidate extends Quote {
  readonly usdcE9: bigint;
}

type Verdict = 'dust' | 'outlier' | null;

/**
 * One token's trades of a span, in the chain's order. `before` and `after` are stored ones, nearest first:
 * 1. a trade of less USDC than the limit is dust;
 * 2. any other is compared with the median of the 21 trades before it, one vote a transaction, without dust and its
 *    own transaction; trades after it fill up the 21. With fewer than 3 to compare with, a trade counts;
 * 3. an outlier has a price above median · (1 + limit) or below median / (1 + limit).
 * Outliers have a vote: else a real jump would be refused for ever, and verdicts depend on the order of reading.
 */
export function filterTrades(
  trades: readonly Candidate[],
  before: readonly Quote[],
  after: readonly Quote[],
  rules: Pick<WatchList, 'dustE9' | 'outlierPercent'>,
): Verdict[] {
  const counted = trades.filter(({ usdcE9 }) => usdcE9 >= rules.dustE9);
  const line: readonly Quote[] = [...before.toReversed(), ...counted, ...after];
  let place = before.length;
  return trades.map((trade) => {
    if (trade.usdcE9 < rules.dustE9) return 'dust';
    const median = medianAround(line, place++);
    if (median === null) return null;
    const reach = 1 + rules.outlierPercent / 100;
    return trade.price > median * reach || trade.price * reach < median ? 'outlier' : null;
  });
}

function medianAround(line: readonly Quote[], place: number): number | null {
  const votes = new Map<string, number>();
  const own = line[place]?.transactionHash;
  const collect = (from: number, step: 1 | -1): void => {
    for (let at = from; at >= 0 && at < line.length && votes.size < WINDOW; at += step) {
      const quote = line[at];
      if (quote && quote.transactionHash !== own && !votes.has(quote.transactionHash)) {
        votes.set(quote.transactionHash, quote.price);
      }
    }
  };
  collect(place - 1, -1);
  collect(place + 1, 1);
  return votes.size < MIN_WINDOW ? null : medianOf([...votes.values()]);
}

function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? 0;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? 0)) / 2;
}

interface KnownPool extends PoolSides {
  readonly kind: PoolKind;
  readonly emitter: `0x${string}`;
  readonly idBytes: Uint8Array;
  readonly token: `0x${string}`;
}

interface PoolBook {
  filters(): LogQuery[];
  /** Reads decimals and the venues' pools. Where the chain does not answer, the next call tries again. */
  prepare(span: LogSpan, chain: ChainClient, signal: AbortSignal): Promise<void>;
  /** Adds announced pools. Gives those that the database lacks, and the first block without them. */
  learn(span: LogSpan): { pools: PoolRow[]; rescanFrom?: number };
  /** By the event's emitter (v4: and pool id). */
  poolOf(log: BlockLog): KnownPool | undefined;
}

/** Of one token: anyone can create any number, and each takes one of a filter's eight places. */
const MAX_V4_POOLS = 16;

/** Begins with the pools of the database and of the venues. A pool is never removed. */
function createPoolBook(watch: WatchList, reads: TradeReads, log?: Pick<Log, 'warn'>): PoolBook {
  const known = new Map<string, KnownPool>();
  /** Not in the database yet, each with the first block whose logs were requested without it. */
  const pending = new Map<string, { row: PoolRow; from: number }>();
  let decimals: Decimals | null = null;

  const remember = (row: PoolRow): void => {
    known.set(bytesToHex(row.id), fromRow(row));
  };
  const add = (row: PoolRow, from: number): void => {
    const id = bytesToHex(row.id);
    const token = bytesToHex(row.token);
    const crowd = [...known.values()].filter((pool) => pool.kind === 'v4' && pool.token === token);
    if (known.has(id) || (row.kind === 'v4' && crowd.length >= MAX_V4_POOLS)) return;
    remember(row);
    pending.set(id, { row, from });
  };

  async function start(span: LogSpan, chain: ChainClient, signal: AbortSignal): Promise<void> {
    if (watch.tokens.length === 0 || watch.venues.length === 0) {
      decimals = new Map();
      return;
    }
    const read = await readDecimals(chain, watch, signal);
    const tokens = watch.tokens.map(({ address }) => address).filter((address) => read.has(address));
    const asked = await askForPools(chain, watch.venues, tokens, watch.usdc, { signal });
    for (const { address, symbol } of watch.tokens) {
      if (!read.has(address))
        log?.warn({}, `the watched token ${symbol} (${address}) reports no decimals: its trades are not read`);
    }
    for (const row of reads.pools()) if (read.has(bytesToHex(row.token))) remember(row);
    for (const { pool, source } of asked) {
      const row = toRow(pool, source.name, span.to, watch, read);
      if (row) add(row, span.from);
    }
    decimals = read;
  }

  return {
    filters: () => [...creationFilters(watch), ...swapFilters([...known.values()], watch)],
    async prepare(span, chain, signal) {
      if (decimals === null) await start(span, chain, signal);
      if (pending.size === 0) return;
      for (const { id } of reads.pools()) pending.delete(bytesToHex(id));
    },
    learn({ logs }) {
      if (decimals === null) throw new Error('the pools were not prepared');
      for (const row of createdIn(logs, watch, decimals)) add(row, row.foundBlock);
      if (pending.size === 0) return { pools: [] };
      const entries = [...pending.values()];
      return { pools: entries.map(({ row }) => row), rescanFrom: Math.min(...entries.map(({ from }) => from)) };
    },
    poolOf({ address, topics }) {
      const [topic, id = ''] = topics;
      const pool = known.get(topic === SWAP_TOPIC.v4 ? id : address);
      return pool?.emitter === address ? pool : undefined;
    },
  };
}

/** By address, of tokens that report them. */
type Decimals = ReadonlyMap<string, number>;

async function readDecimals(chain: ChainClient, watch: WatchList, signal: AbortSignal): Promise<Decimals> {
  const addresses = [watch.usdc, ...watch.tokens.map(({ address }) => address)];
  const block = await readBlockNumber(chain, { signal });
  const tokens = await readTokens(chain, addresses, block, { signal });
  const known = tokens.flatMap((token) => (token?.decimals == null ? [] : [[token.address, token.decimals] as const]));
  return new Map(known);
}

function createdIn(logs: readonly BlockLog[], watch: WatchList, decimals: Decimals): PoolRow[] {
  return logs.flatMap((log) => {
    const venue = watch.venues.find(({ address }) => address === log.address);
    const pool = venue && decodeCreation(venue.kind, log);
    return (venue && pool && toRow(pool, venue.name, log.block, watch, decimals)) ?? [];
  });
}

/** Null unless it is a pool of a watched token against USDC (ERC-20 or native). */
function toRow(
  { kind, id, emitter, token0, token1 }: CreatedPool,
  venue: string,
  foundBlock: number,
  watch: WatchList,
  decimals: Decimals,
): PoolRow | null {
  const places = (side: string) =>
    side === watch.usdc ? decimals.get(side) : kind === 'v4' && side === NATIVE_CURRENCY ? NATIVE_DECIMALS : undefined;
  const isWatched = (side: string) => watch.tokens.some(({ address }) => address === side);
  const tokenFirst = isWatched(token0) && places(token1) !== undefined;
  const [token, usdc] = tokenFirst ? [token0, token1] : [token1, token0];
  const [tokenDecimals, usdcDecimals] = [decimals.get(token), places(usdc)];
  if (!isWatched(token) || tokenDecimals === undefined || usdcDecimals === undefined) return null;
  const bytes = { id: hexToBytes(id), emitter: hexToBytes(emitter), token: hexToBytes(token) };
  return { ...bytes, venue, kind, tokenFirst, tokenDecimals, usdcDecimals, foundBlock };
}

function fromRow({ id, emitter, token, kind, tokenFirst, tokenDecimals, usdcDecimals }: PoolRow): KnownPool {
  const sides = { tokenFirst, tokenDecimals, usdcDecimals };
  return { ...sides, kind, idBytes: id, emitter: bytesToHex(emitter), token: bytesToHex(token) };
}

/** Both tokens are indexed: topics two and three, in v4 after the id. */
function creationFilters({ venues, tokens, usdc }: WatchList): LogQuery[] {
  const sides = [usdc, ...tokens.map(({ address }) => address)];
  const topics = (addresses: readonly string[]) => alternatives(addresses.map(toTopic));
  const factories = venues.filter(({ kind }) => kind !== 'v4');
  const managers = venues.filter(({ kind }) => kind === 'v4');
  const filters: LogQuery[] = [];
  if (factories.length > 0) {
    const created = [...new Set(factories.map(({ kind }) => CREATION_TOPIC[kind]))];
    filters.push({
      addresses: factories.map(({ address }) => address),
      topics: [created, topics(sides), topics(sides)],
    });
  }
  if (managers.length > 0) {
    const currencies = topics([NATIVE_CURRENCY, ...sides]);
    filters.push({
      addresses: managers.map(({ address }) => address),
      topics: [CREATION_TOPIC.v4, null, currencies, topics(sides)],
    });
  }
  return filters;
}

/** Swaps, and v2's reserves before each; v4's by pool id. A kind without a pool names USDC, which never swaps. */
function swapFilters(pools: readonly KnownPool[], { venues, usdc }: WatchList): LogQuery[] {
  const filters: LogQuery[] = [];
  const kinds = new Set(venues.map(({ kind }) => kind));
  const swaps = [...kinds].filter((kind) => kind !== 'v4').map((kind) => SWAP_TOPIC[kind]);
  const topics = [...new Set([...swaps, ...(kinds.has('v2') ? [SYNC_TOPIC] : [])])];
  if (topics.length > 0) {
    const emitters = pools.filter(({ kind }) => kind !== 'v4').map(({ emitter }) => emitter);
    filters.push({ addresses: emitters.length > 0 ? emitters : [usdc], topics: [topics] });
  }
  if (kinds.has('v4')) {
    const own = pools.filter(({ kind }) => kind === 'v4');
    const managers = [...new Set(own.map(({ emitter }) => emitter))];
    const parts = inParts(own.map(({ idBytes }) => bytesToHex(idBytes)));
    for (const ids of parts) filters.push({ addresses: managers, topics: [SWAP_TOPIC.v4, ids] });
    if (parts.length === 0) filters.push({ addresses: [usdc], topics: [SWAP_TOPIC.v4] });
  }
  return filters;
}
