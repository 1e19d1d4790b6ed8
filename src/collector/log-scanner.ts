import type { BlockLog, LogQuery } from '../chain/block-logs.ts';
import type { ChainClient } from '../chain/rpc/client.ts';
import type { PoolRow, TokenEventRow, TradeRow } from '../store/chain/rows.ts';

/** An event as its contract wrote it; its time is interpolated (a second or two off) when the block itself has not been read yet. */
export type ScanLog = BlockLog;

/**
 * One filter of eth_getLogs. `addresses` empty means any emitter, which is only affordable for rare events.
 * The first topic must be given, with at most 8 alternatives (Arc's nodes refuse more).
 */
export type LogFilter = LogQuery;

/** Blocks `from` to `to`, both included, and their logs in the chain's order. */
export interface LogSpan {
  readonly from: number;
  readonly to: number;
  readonly logs: readonly ScanLog[];
}

/** What a scanner made of a span: every row that the span's logs give, and no other. */
export interface ScanWrites {
  readonly trades?: readonly TradeRow[];
  readonly tokenEvents?: readonly TokenEventRow[];
  /** Pools stay when found; one that is known already is left as it is. */
  readonly pools?: readonly PoolRow[];
  /**
   * Something was found here (a pool) that no filter named before: blocks from this one up which were scanned already are scanned again.
   * Only for what is new: it costs requests, and a scanner that always asks for it never comes to an end.
   */
  readonly rescanFrom?: number;
}

/**
 * A reader of events that the collector feeds: from block receipts near the head, from eth_getLogs over spans of older blocks.
 *
 * What the collector guarantees:
 * 1. Every block of the retention window is scanned at least once, in spans of any length, ascending at the head and newest span first in the background.
 *    Spans may come again (a block read in full after its logs, a replaced block, a changed `key`), with other bounds too.
 * 2. `scan` runs inside the write transaction of its span, after every `trades` and `token_events` row of the span was deleted: returning the rows
 *    of the logs at hand is enough, and the same logs give the same rows. It may read the database, and must not write to it.
 * 3. Logs are sorted by block and index, each once, and belong to the blocks that are stored beside them.
 * 4. From receipts a scanner gets every log whose first topic one of its filters names, whatever its address: it must ignore what is not its own.
 */
export interface LogScanner {
  /** Names what is looked for (tokens, contracts); when it changes between starts, old blocks are scanned again. */
  readonly key: string;
  /** What to ask for, taken anew before each span; the first topics must not change. At most a few: each is one call of a batch. */
  filters(): readonly LogFilter[];
  /**
   * Runs before the transaction of each span with the same logs: the place for questions to the chain (decimals of a new pool).
   * `chain` waits for the collector's request budget. When it throws, the span is not stored and comes again.
   */
  prepare?(span: LogSpan, chain: ChainClient, signal: AbortSignal): Promise<void>;
  scan(span: LogSpan): ScanWrites;
}
