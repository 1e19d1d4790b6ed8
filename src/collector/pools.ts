import { readBlockNumber } from '../chain/block.ts';
import {
  CREATION_TOPIC,
  type CreatedPool,
  decodeCreation,
  NATIVE_CURRENCY,
  type PoolKind,
  type PoolSides,
  SWAP_TOPIC,
  SYNC_TOPIC,
} from '../chain/dex.ts';
import { askForPools } from '../chain/dex-ask.ts';
import { readTokens } from '../chain/erc20.ts';
import type { ChainClient } from '../chain/rpc/client.ts';
import { bytesToHex, hexToBytes } from '../lib/hex.ts';
import { NATIVE_DECIMALS } from '../lib/units.ts';
import type { PoolRow } from '../store/chain/rows.ts';
import type { TradeReads } from '../store/chain/trade-reads.ts';
import type { LogFilter, LogSpan, ScanLog } from './log-scanner.ts';
import { alternatives, inParts, type WatchList } from './watch-list.ts';

/** A pool whose trades are read. */
export interface KnownPool extends PoolSides {
  readonly kind: PoolKind;
  readonly emitter: `0x${string}`;
  readonly idBytes: Uint8Array;
  readonly token: `0x${string}`;
}

/** The known pools of the watched tokens against USDC. */
export interface PoolBook {
  filters(): LogFilter[];
  /** Reads decimals and asks the venues for their pools, once. Throws when the chain does not answer; the next call tries again. */
  prepare(span: LogSpan, chain: ChainClient, signal: AbortSignal): Promise<void>;
  /** Adds the pools that the span's logs announce. Returns the pools that the database lacks, and the first block that was scanned without them. */
  learn(span: LogSpan): { pools: PoolRow[]; rescanFrom?: number };
  /** The pool of an event, by its emitter (v4: and pool id); undefined when it is no known pool. */
  poolOf(log: ScanLog): KnownPool | undefined;
}

/**
 * Most v4 pools of one token. Any account can create any number of v4 pools; the usual ones are asked for at start, so they come first.
 * Each pool takes a place in the filters, and a call has eight places.
 */
const MAX_V4_POOLS = 16;

/** Creates the pools' list in memory. It begins with the pools of the database and of the venues. A pool is never removed. */
export function createPoolBook(watch: WatchList, reads: TradeReads, warn: (message: string) => void): PoolBook {
  const known = new Map<string, KnownPool>();
  /** Pools that are not in the database yet, each with the first block whose logs were requested without it. */
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
    warnOfUnread(watch, read, warn);
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

/** Decimals by address. A token that reports none is missing. */
type Decimals = ReadonlyMap<string, number>;

async function readDecimals(chain: ChainClient, watch: WatchList, signal: AbortSignal): Promise<Decimals> {
  const addresses = [watch.usdc, ...watch.tokens.map(({ address }) => address)];
  const block = await readBlockNumber(chain, { signal });
  const tokens = await readTokens(chain, addresses, block, { signal });
  return new Map(
    tokens.flatMap((token) => (token?.decimals == null ? [] : [[token.address, token.decimals] as const])),
  );
}

function warnOfUnread({ tokens }: WatchList, read: Decimals, warn: (message: string) => void): void {
  for (const { address, symbol } of tokens) {
    if (!read.has(address))
      warn(`the watched token ${symbol} (${address}) reports no decimals: its trades are not read`);
  }
}

/** The pools of watched tokens against USDC that these logs announce. */
function createdIn(logs: readonly ScanLog[], watch: WatchList, decimals: Decimals): PoolRow[] {
  return logs.flatMap((log) => {
    const venue = watch.venues.find(({ address }) => address === log.address);
    const pool = venue && decodeCreation(venue.kind, log);
    return (venue && pool && toRow(pool, venue.name, log.block, watch, decimals)) ?? [];
  });
}

/** The row of a pool; null unless it is a pool of a watched token against USDC (the ERC-20 contract or the native currency). */
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

/** The filters of creation events. Both tokens are indexed: topics two and three, in v4 after the id. */
function creationFilters({ venues, tokens, usdc }: WatchList): LogFilter[] {
  const sides = [usdc, ...tokens.map(({ address }) => address)];
  const topics = (addresses: readonly string[]) =>
    alternatives(addresses.map((address) => `0x${address.slice(2).padStart(64, '0')}` as const));
  const factories = venues.filter(({ kind }) => kind !== 'v4');
  const managers = venues.filter(({ kind }) => kind === 'v4');
  const filters: LogFilter[] = [];
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

/**
 * The filters of swaps, and of the reserves that a v2 pair writes before each. v4's name the pool id, because all its swaps come from one contract.
 * A kind without a pool yet names the USDC contract, which emits no swaps.
 */
function swapFilters(pools: readonly KnownPool[], { venues, usdc }: WatchList): LogFilter[] {
  const filters: LogFilter[] = [];
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
