import type { BlockLog, LogQuery } from '../chain/block.ts';
import type { ChainClient } from '../chain/rpc/client.ts';
import type { Config } from '../config.ts';
import type { Span } from '../lib/coverage.ts';
import type { PoolRow, TokenAccountRow, TokenEventRow, TradeRow } from './store/rows.ts';

/**
 * Reads events of the logs that the collector passes: from receipts near the head, from eth_getLogs for older blocks.
 * 1. Every block of the retention window is scanned, in spans of any length, newest first below the head. It may be
 *    scanned again in other spans: when it is read in full after its logs, was replaced, or `key` changed.
 * 2. `scan` runs in its span's write transaction, after the span's `trades` and `token_events` were deleted. It may
 *    read the database and not write to it. The same logs must give the same rows.
 * 3. Logs are sorted by block and index, each occurs once, and their blocks are stored in the same transaction.
 * 4. From receipts come all logs whose first topic a filter names, from any address: a scanner ignores unwanted ones.
 */
export interface LogScanner {
  /** What the scanner looks for (tokens, contracts). When it changes between starts, old blocks are scanned again. */
  readonly key: string;
  /**
   * Read again before each span. Return few: each is one call of a batch. The first topics, at most 8, must not change.
   * Empty `addresses` mean any emitter, for rare events only.
   */
  filters(): readonly LogQuery[];
  /** Runs before each span's transaction, and may read the chain. When it throws, the span is read again. */
  prepare?(span: LogSpan, chain: ChainClient, signal: AbortSignal): Promise<void>;
  scan(span: LogSpan): ScanWrites;
}

/** Blocks and their logs in the chain's order. Of a block that was not read yet, the time is a second or two off. */
export interface LogSpan extends Span {
  readonly logs: readonly BlockLog[];
}

export interface ScanWrites {
  readonly trades?: readonly TradeRow[];
  readonly tokenEvents?: readonly TokenEventRow[];
  /** Not deleted before the span is scanned again, so the same logs may add nothing. */
  readonly tokenAccounts?: readonly TokenAccountRow[];
  /** Never deleted, and a known pool is not changed. */
  readonly pools?: readonly PoolRow[];
  /** Scans blocks from here up again, for a find (a pool) that no filter named. Always set, it would never finish. */
  readonly rescanFrom?: number;
}

/** What the collector looks for in the chain's logs; addresses in lower case. */
export type WatchList = Config['watch'] & { readonly usdc: `0x${string}` };

/** Arc's nodes refuse more alternatives of the first topic (-32012, measured). Every position is kept to the limit. */
const MAX_ALTERNATIVES = 8;

export function inParts<T>(values: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(values.length / MAX_ALTERNATIVES) }, (_, part) =>
    values.slice(part * MAX_ALTERNATIVES, (part + 1) * MAX_ALTERNATIVES),
  );
}

/** The values as one position of a filter. Null (any) when they are too many; the caller must then filter the logs. */
export function alternatives<T>(values: readonly T[]): readonly T[] | null {
  return values.length <= MAX_ALTERNATIVES ? values : null;
}

export function toTopic(address: string): `0x${string}` {
  return `0x${address.slice(2).padStart(64, '0')}`;
}
