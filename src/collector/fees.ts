import { setImmediate as nextTurn } from 'node:timers/promises';
import { feeSpanCalls, readFeeSpan } from '../chain/fees.ts';
import { askChecked } from '../chain/rpc/checked.ts';
import type { Coverage, Span } from '../lib/coverage.ts';
import { type CollectorContext, noteRefused } from './context.ts';

/** Calls for one span: the history and the headers of both ends. */
const CALLS_PER_SPAN = 3;

/** Reads and stores base fees of the newest `blocks` missing blocks, several spans in one request. False when one is refused. */
export async function fillFees(context: CollectorContext, missing: Coverage, blocks: number): Promise<boolean> {
  const length = Math.min(context.limits.feeSpan, blocks);
  const spans = newestSpans(missing, length, Math.floor(blocks / length));
  const calls = spans.flatMap(({ from, to }) => feeSpanCalls(from, to));
  const read = await askChecked(
    context.fillChain,
    calls,
    (outcomes) =>
      spans.map(({ from, to }, at) =>
        readFeeSpan(outcomes.slice(at * CALLS_PER_SPAN, (at + 1) * CALLS_PER_SPAN), from, to),
      ),
    { onRefused: (reason) => noteRefused(context, reason) },
  );
  for (const [at, span] of spans.entries()) {
    const rows = read[at];
    if (!rows) return false;
    context.writes.storeFees(span, rows);
    // A thousand rows take some milliseconds. Between spans the event loop serves buyers' requests.
    await nextTurn();
  }
  return true;
}

/** Up to `count` spans of at most `length` blocks, the newest first. */
export function newestSpans(missing: Coverage, length: number, count: number): Span[] {
  const spans: Span[] = [];
  for (const gap of missing.toReversed()) {
    for (let to = gap.to; to >= gap.from && spans.length < count; to -= length) {
      spans.push({ from: Math.max(gap.from, to - length + 1), to });
    }
  }
  return spans;
}
