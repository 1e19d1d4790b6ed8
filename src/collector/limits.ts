import { MAX_LOG_SPAN } from '../chain/block.ts';
import { MAX_FEE_SPAN } from '../chain/fees.ts';

/** Limits on the collector's requests and on the data that it keeps. */
export interface CollectorLimits {
  /** How often the head is asked for. */
  readonly pollIntervalMs: number;
  /** HTTP requests in the long run, both loops together. */
  readonly requestsPerSecond: number;
  /** The window of past blocks that is filled. */
  readonly backfillHours: number;
  /** How long raw rows are kept before they are rolled up into hours. */
  readonly retentionDays: number;
  /** How long rolled-up hours are kept. */
  readonly hoursDays: number;
  /** Blocks with receipts in one batch, which also asks for the head. */
  readonly blocksPerRequest: number;
  readonly feeSpan: number;
  readonly feeSpansPerRequest: number;
  /** Blocks of one eth_getLogs. */
  readonly logSpan: number;
  /** A larger gap to the head is left to the background loop, so that the newest blocks are read first. */
  readonly jumpBlocks: number;
}

/** Sources: `facts` of Arc's public endpoint, measured; the operator or a test may change each. */
export const DEFAULT_LIMITS: CollectorLimits = {
  pollIntervalMs: 1000,
  // The public endpoint accepts about 2 requests a second, and the rest of the service needs some of them.
  requestsPerSecond: 1.5,
  backfillHours: 24,
  retentionDays: 3,
  hoursDays: 365,
  // 2 calls a block and 1 for the head: 99 calls, and nodes accept 100 in a batch.
  blocksPerRequest: 49,
  feeSpan: MAX_FEE_SPAN,
  // 3 calls a span; an answer of 16 spans is about 1 MB.
  feeSpansPerRequest: 16,
  logSpan: MAX_LOG_SPAN,
  // Two minutes of half-second blocks: five requests.
  jumpBlocks: 240,
};
