import { logsCall, readLogs } from '../chain/block.ts';
import { askChecked } from '../chain/rpc/checked.ts';
import type { Coverage } from '../lib/coverage.ts';
import { bytesToHex } from '../lib/hex.ts';
import { type CollectorContext, noteRefused } from './context.ts';
import { newestSpans } from './fees.ts';
import { dedupeLogs, prepareScan } from './scan.ts';

/**
 * Scans the newest `size` missing blocks by one eth_getLogs for each filter, all in one request.
 * Rejects when the node refuses the span (too long, too many results). The caller may try a shorter one.
 */
export async function fillLogs(context: CollectorContext, missing: Coverage, size: number): Promise<void> {
  const [span] = newestSpans(missing, size, 1);
  if (span === undefined) return;
  const { lookups, fillChain, scanners, writes, state } = context;
  const calls = scanners.flatMap((scanner) => scanner.filters()).map((filter) => logsCall(filter, span.from, span.to));
  const known = {
    ...span,
    atOf: (block: number) => lookups.atOf(block) ?? state.head?.at ?? 0,
    hashOf: (block: number) => {
      const hash = lookups.hashOf(block);
      return hash && bytesToHex(hash);
    },
  };
  const found =
    calls.length === 0
      ? []
      : await askChecked(fillChain, calls, (outcomes) => outcomes.map((outcome) => readLogs(outcome, known)), {
          onRefused: (reason) => noteRefused(context, reason),
        });
  if (found.some((logs) => logs === null)) throw new Error(`no provider gives the logs of ${size} blocks at once`);
  const logs = dedupeLogs(found.flatMap((part) => part ?? []));
  const scan = await prepareScan(context, fillChain, { ...span, logs });
  writes.storeLogs(span, () => scan.rows());
  const rescanFrom = scan.rescanFrom();
  if (rescanFrom !== null) writes.forgetLogs({ from: rescanFrom, to: (state.next ?? span.to + 1) - 1 });
}
