import type { BlockLog, LogQuery } from '../chain/block.ts';
import type { ChainClient } from '../chain/rpc/client.ts';
import type { Config } from '../config.ts';
import type { Span } from '../lib/coverage.ts';
import type { PoolRow, TokenAccountRow, TokenEventRow, TradeRow } from './store/rows.ts';

/**
 * Reads events of the logs that the collector passes: from receipts near the head, from eth_getLogs for older blocks.
 * 1. Every block of the retention window is scanned, in spans of any length, newest first below the head; again in
 *    other spans when it is read in full after its logs, was replaced, or `key` changed.
 * 2. `scan` runs in its span's write transaction, after the span's `trades` and `token_events` were deleted. It may
 *    read the database, not write to it. The same logs must give the same rows.
 * 3. Logs are sorted, each occurs once, and their blocks are stored in the same transaction.
 * 4. Receipts give all logs whose first topic a filter names, from any address: a scanner ignores unwanted ones.
 */
export interface LogScanner {
  /** What it looks for (tokens, contracts). When it changes between starts, old blocks are scanned again. */
  readonly key: string;
  /**
   * Read again before each span. Each is one call of a batch, so return few. The first topics, at most 8, must not
   * change. Empty `addresses` mean any emitter, for rare events only.
   */
  filters(): readonly LogQuery[];
  /** Before each span's transaction. When it throws, the span is read again. */
  prepare?(span: LogSpan, chain: ChainClient, signal: AbortSignal): Promise<void>;
  scan(span: LogSpan): ScanWrites;
}

/** In the chain's order. The time of a block that was not read yet is a second or two off. */
export interface LogSpan extends Span {
  readonly logs: readonly BlockLog[];
}

export interface ScanWrites {
  readonly trades?: readonly TradeRow[];
  readonly tokenEvents?: readonly TokenEventRow[];
  /** Not deleted before the span is scanned again. */
  readonly tokenAccounts?: readonly TokenAccountRow[];
  /** Never deleted; a known pool is not changed. */
  readonly pools?: readonly PoolRow[];
  /** Scans blocks from here up again, for a find (a pool) that no filter named. Always set, it never ends. */
  readonly rescanFrom?: number;
}

/** Addresses in lower case. */
export type WatchList = Config['watch'] & { readonly usdc: `0x${string}` };

/** Arc's nodes refuse more alternatives of the first topic (-32012, measured); we keep every position to it. */
const MAX_ALTERNATIVES = 8;

export function inParts<T>(values: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(values.length / MAX_ALTERNATIVES) }, (_, part) =>
    values.slice(part * MAX_ALTERNATIVES, (part + 1) * MAX_ALTERNATIVES),
  );
}

/** One position of a filter. Null (any) for too many values: the caller must then filter the logs. */
export function alternatives<T>(values: readonly T[]): readonly T[] | null {
  return values.length <= MAX_ALTERNATIVES ? values : null;
}

export function toTopic(address: string): `0x${string}` {
  return `0x${address.slice(2).padStart(64, '0')}`;
}
