import type { BlockLog } from '../chain/block.ts';
import type { ChainClient } from '../chain/rpc/client.ts';
import type { LogRows } from '../store/chain/span-writes.ts';
import type { CollectorContext } from './context.ts';
import type { LogScanner, LogSpan, ScanWrites } from './log-scanner.ts';

/** Every first topic that a scanner names. */
export function firstTopicsOf(scanners: readonly LogScanner[]): ReadonlySet<string> {
  return new Set(scanners.flatMap((scanner) => scanner.filters().flatMap(({ topics }) => topics[0] ?? [])));
}

/** The keys of all scanners. When it changes, all scanned blocks must be scanned again. */
export const keyOf = (scanners: readonly LogScanner[]): string => scanners.map(({ key }) => key).join('\n');

/** Logs of several filters as one sorted list, each log once. */
export function dedupeLogs(logs: readonly BlockLog[]): BlockLog[] {
  const sorted = [...logs].sort((a, b) => a.block - b.block || a.logIndex - b.logIndex);
  return sorted.filter((log, at) => {
    const before = sorted[at - 1];
    return before === undefined || before.block !== log.block || before.logIndex !== log.logIndex;
  });
}

/** A span whose scanners are prepared. */
export interface PreparedScan {
  /** The rows of all scanners. Call it inside the span's transaction. */
  rows(): LogRows;
  /** The lowest block from which scanned blocks must be scanned again, or null. Call it after `rows`. */
  rescanFrom(): number | null;
}

/** Runs every scanner's `prepare` before the transaction. */
export async function prepareScan(context: CollectorContext, chain: ChainClient, span: LogSpan): Promise<PreparedScan> {
  for (const scanner of context.scanners) await scanner.prepare?.(span, chain, context.signal);
  let writes: ScanWrites[] = [];
  return {
    rows() {
      writes = context.scanners.map((scanner) => scanner.scan(span));
      return {
        trades: writes.flatMap(({ trades = [] }) => trades),
        tokenEvents: writes.flatMap(({ tokenEvents = [] }) => tokenEvents),
        pools: writes.flatMap(({ pools = [] }) => pools),
        tokenAccounts: writes.flatMap(({ tokenAccounts = [] }) => tokenAccounts),
      };
    },
    rescanFrom() {
      const asked = writes.flatMap(({ rescanFrom = null }) => rescanFrom ?? []);
      return asked.length === 0 ? null : Math.min(...asked);
    },
  };
}
