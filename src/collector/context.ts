import { MAX_LOG_SPAN } from '../chain/block.ts';
import type { ContractCode } from '../chain/contracts.ts';
import { MAX_FEE_SPAN } from '../chain/fees.ts';
import { askChecked, type RefusalReason } from '../chain/rpc/checked.ts';
import type { ChainClient } from '../chain/rpc/client.ts';
import type { RpcCall, RpcOutcome } from '../chain/rpc/wire.ts';
import type { Common } from '../lib/common.ts';
import type { LogScanner } from './scanner.ts';
import type { ChainFacts, ChainLookups, SeenHead } from './store/facts.ts';
import type { ChainWrites } from './store/writes.ts';

// What the collector's loops share: their clients, their limits and their state.

/** `signal` ends every running request. */
export interface CollectorContext extends Common {
  readonly limits: CollectorLimits;
  readonly lookups: ChainLookups;
  readonly writes: ChainWrites;
  readonly facts: ChainFacts;
  readonly scanners: readonly LogScanner[];
  readonly describeCode: DescribeCode | null;
  readonly signal: AbortSignal;
  /** Each loop's own, within the common budget. */
  readonly chain: ChainClient;
  readonly state: CollectorState;
}

/** What is not in the database. The head loop writes `head`, `next` and the times, both loops the counters. */
export interface CollectorState {
  head: SeenHead | null;
  headAdvancedMs: number | null;
  headCheckedMs: number | null;
  /** A websocket's higher head: it proves nothing, but the next poll asks for its blocks. */
  hint: number | null;
  /** The head loop's next block. The background loop reads every block below it. */
  next: number | null;
  hasBlockReceipts: boolean;
  codeIsPending: boolean;
  requests: number;
  failures: number;
  reorgs: number;
  replacedBlocks: number;
  refused: Map<RefusalReason, number>;
}

export function noteRefused({ state }: CollectorContext, reason: RefusalReason): void {
  state.refused.set(reason, (state.refused.get(reason) ?? 0) + 1);
}

/** Counts each answer that `read` refuses. */
export function askCounted<T>(
  context: CollectorContext,
  calls: readonly RpcCall[],
  read: (outcomes: readonly RpcOutcome[]) => T,
): Promise<T> {
  return askChecked(context.chain, calls, read, (reason) => noteRefused(context, reason));
}

/** `chain` waits for the request budget. */
export type DescribeCode = (
  deploys: readonly DeployedCode[],
  chain: ChainClient,
  signal: AbortSignal,
) => Promise<readonly DescribedCode[]>;

/** `code` is null where it was read earlier. */
interface DeployedCode extends ContractCode {
  /** keccak-256. */
  readonly codeHash: `0x${string}`;
}

interface DescribedCode {
  readonly label: string | null;
  /** See `DeployKinds`. */
  readonly kinds: number;
}

export interface CollectorLimits {
  readonly pollIntervalMs: number;
  /** In the long run, both loops together. */
  readonly requestsPerSecond: number;
  readonly backfillHours: number;
  /** Then raw rows are rolled up into hours. */
  readonly retentionDays: number;
  readonly hoursDays: number;
  readonly blocksPerRequest: number;
  readonly feeSpan: number;
  readonly feeSpansPerRequest: number;
  readonly logSpan: number;
  /** A larger gap to the head is left to the background loop: the newest blocks come first. */
  readonly jumpBlocks: number;
}

/** Measured on Arc's public endpoint (the project's facts). */
export const DEFAULT_LIMITS: CollectorLimits = {
  pollIntervalMs: 1000,
  // The endpoint accepts about 2, and the rest of the service needs some.
  requestsPerSecond: 1.5,
  backfillHours: 24,
  retentionDays: 3,
  hoursDays: 365,
  // 2 calls a block and 1 for the head; nodes accept 100 in a batch.
  blocksPerRequest: 49,
  feeSpan: MAX_FEE_SPAN,
  // 3 calls a span; an answer of 16 spans is about 1 MB.
  feeSpansPerRequest: 16,
  logSpan: MAX_LOG_SPAN,
  // Two minutes of half-second blocks: five requests.
  jumpBlocks: 240,
};

interface Sizer {
  readonly size: number;
  grow(): void;
  /** False when the size is 1 already. */
  shrink(): boolean;
}

/** A request's size, from 1 to `max`: halved after a failure (a time-out, a refused span), else doubled. */
export function createSizer(max: number, start: number = max): Sizer {
  let size = Math.min(start, max);
  return {
    get size() {
      return size;
    },
    grow() {
      size = Math.min(max, size * 2);
    },
    shrink() {
      const small = size === 1;
      size = Math.max(1, Math.floor(size / 2));
      return !small;
    },
  };
}
