import { z } from 'zod';
import { UpstreamFailed } from '../errors.ts';
import { headerCall, readHeader } from './block.ts';
import { createChainCache } from './chain-cache.ts';
import type { RpcCall, RpcOptions } from './rpc/call.ts';
import type { ChainClient } from './rpc/client.ts';
import { index, quantity, type RpcOutcome, readOutcome, toQuantity } from './rpc/wire.ts';

/** reth's cap on the blocks of one eth_feeHistory. */
const SPAN = 1024;
/** An hour of half-second blocks is 7,200 blocks, and nine aligned spans hold at least 8,193. On a faster chain the window is shorter than asked for. */
const MAX_SPANS = 9;
/** Blocks before the head that the newest span may lack. On Arc they are five seconds of the hour. */
const MAX_MISSING_BLOCKS = 10;

const historySchema = z.object({ oldestBlock: index, baseFeePerGas: z.array(quantity).min(1) });

/** Base fees of consecutive blocks that begin with `from`. `startAt` is the time of the first block. */
interface FeeSpan {
  readonly from: number;
  readonly fees: readonly bigint[];
  readonly startAt: number;
}

/** Base fees of the blocks up to `toBlock`, oldest first, and the seconds that they cover. At most MAX_MISSING_BLOCKS blocks before `toBlock` may be missing. */
export interface FeeWindow {
  readonly fees: readonly bigint[];
  readonly toBlock: number;
  readonly seconds: number;
}

/** The block that a window ends with: its number, its time in Unix seconds and its base fee in wei. */
interface Newest {
  readonly number: number;
  readonly at: number;
  readonly baseFee: bigint;
}

/** Finished spans, which never change. It holds three more than one window needs, for calls that see different heads. */
const spansOf = createChainCache<FeeSpan>(SPAN * (MAX_SPANS + 3), MAX_SPANS + 3);

/**
 * The base fees of the last `seconds` before `head`, in one batch. It reads at most nine spans, and mostly one, because finished spans are cached.
 * The histories end one block before the head, and the head's fee is taken from `head`: a node may add a block to its fee history a moment after it has
 * given out the block's header. Two blocks may follow each other at once, so the newest span may lack MAX_MISSING_BLOCKS.
 * Fee history carries no times. So the place inside a span where the window begins is interpolated from the times of the spans.
 * Throws UpstreamFailed (502) when there is no history, or one of other blocks than asked for.
 */
export async function readFeeWindow(
  chain: ChainClient,
  head: Newest,
  seconds: number,
  options: RpcOptions,
): Promise<FeeWindow> {
  const cache = spansOf(chain);
  const newest = head.number - 1;
  const last = Math.floor(newest / SPAN);
  const wanted = Array.from({ length: Math.min(MAX_SPANS, last + 1) }, (_, back) => last - back).reverse();
  const missing = wanted.filter((span) => cache.get(String(span), newest) === undefined);
  const outcomes = await chain.batch(
    missing.flatMap((span) => [historyCall(span, newest), headerCall(span * SPAN)]),
    options,
  );
  const fresh = new Map(missing.map((span, at) => [span, toSpan(span, newest, outcomes.slice(2 * at, 2 * at + 2))]));
  const spans = wanted.flatMap((span) => fresh.get(span) ?? cache.get(String(span), newest) ?? []);
  for (const [span, read] of fresh) {
    if (read.from + read.fees.length === (span + 1) * SPAN) cache.set(String(span), newest, read);
  }
  return cut(spans, head, seconds);
}

/** The last block of a span whose fees are read, on a chain of which all blocks up to `newest` are. */
function lastOf(span: number, newest: number): number {
  return Math.min((span + 1) * SPAN - 1, newest);
}

function historyCall(span: number, newest: number): RpcCall {
  const last = lastOf(span, newest);
  return { method: 'eth_feeHistory', params: [toQuantity(last - span * SPAN + 1), toQuantity(last), []] };
}

function toSpan(span: number, newest: number, [history, first]: readonly RpcOutcome[]): FeeSpan {
  const { oldestBlock, baseFeePerGas } = readOutcome(history, historySchema, 'fee history');
  // The answer ends with the fee of the block after its newest one.
  const fees = baseFeePerGas.slice(0, -1);
  const last = lastOf(span, newest);
  const lacking = last - (oldestBlock + fees.length - 1);
  if (oldestBlock < span * SPAN || lacking < 0 || lacking > (last === newest ? MAX_MISSING_BLOCKS : 0)) {
    throw new UpstreamFailed('chain', 'gave fee history of other blocks than asked for');
  }
  return { from: oldestBlock, fees, startAt: readHeader(first, span * SPAN).at };
}

/** Keeps the part of the spans that lies within `seconds` before the head, and adds the head. */
function cut(spans: readonly FeeSpan[], head: Newest, seconds: number): FeeWindow {
  const since = head.at - seconds;
  const at = Math.max(
    spans.findLastIndex(({ startAt }) => startAt <= since),
    0,
  );
  const span = spans[at];
  // The head is the chain's first block.
  if (span === undefined) return { fees: [head.baseFee], toBlock: head.number, seconds: 0 };
  const endAt = spans[at + 1]?.startAt ?? head.at;
  const share = endAt > span.startAt ? Math.max(since - span.startAt, 0) / (endAt - span.startAt) : 0;
  const fees = spans.slice(at).flatMap((part) => part.fees);
  const kept = [...fees.slice(Math.floor(share * span.fees.length)), head.baseFee];
  return { fees: kept, toBlock: head.number, seconds: head.at - Math.max(since, span.startAt) };
}
