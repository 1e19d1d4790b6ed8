import type { RefusalReason } from '../chain/rpc/checked.ts';
import type { ChainClient } from '../chain/rpc/client.ts';
import type { ChainLog } from '../chain/rpc/heads.ts';
import type { Clock } from '../lib/clock.ts';
import type { ChainFacts } from '../store/chain/facts.ts';
import type { ChainLookups } from '../store/chain/lookups.ts';
import type { ChainWrites } from '../store/chain/writes.ts';
import type { CollectorLimits } from './limits.ts';
import type { LogScanner } from './log-scanner.ts';

/** The levels of the log that the collector uses; `error` for alarms. */
export interface CollectorLog extends ChainLog {
  error(fields: Record<string, unknown>, message: string): void;
}

/** A contract whose code was read, just now or earlier (null). */
export interface DeployedCode {
  readonly address: `0x${string}`;
  readonly code: `0x${string}` | null;
  /** keccak-256. */
  readonly codeHash: `0x${string}`;
}

/** What a contract was found to be. */
export interface DescribedCode {
  /** Null when nothing was found. */
  readonly label: string | null;
  /** See `DeployKinds`. */
  readonly kinds: number;
}

/** Describes each contract. `chain` waits for the request budget. */
export type DescribeCode = (
  deploys: readonly DeployedCode[],
  chain: ChainClient,
  signal: AbortSignal,
) => Promise<readonly DescribedCode[]>;

/** What both loops share. `signal` ends every running request. */
export interface CollectorContext {
  readonly limits: CollectorLimits;
  readonly clock: Clock;
  readonly log: CollectorLog;
  readonly lookups: ChainLookups;
  readonly writes: ChainWrites;
  readonly facts: ChainFacts;
  readonly scanners: readonly LogScanner[];
  readonly describeCode: DescribeCode | null;
  readonly signal: AbortSignal;
  /** For the head loop, which leaves no reserve. */
  readonly headChain: ChainClient;
  /** For the background loop, which leaves one request for the head loop. */
  readonly fillChain: ChainClient;
  readonly state: CollectorState;
}

/** A block as the head of the chain. */
export interface SeenHead {
  readonly number: number;
  readonly hash: `0x${string}`;
  /** Unix seconds. */
  readonly at: number;
}

/** State that is not in the database. The head loop writes `head`, `next` and the times. Both loops write the counters. */
export interface CollectorState {
  /** The newest block that a provider reported, in this run or the one before. */
  head: SeenHead | null;
  headAdvancedMs: number | null;
  headCheckedMs: number | null;
  /** A higher head that a websocket reported. It proves nothing, but the next poll asks for its blocks. */
  hint: number | null;
  /** The next block that the head loop reads. The background loop reads every block below it. */
  next: number | null;
  /** Whether some provider has eth_getBlockReceipts. */
  hasBlockReceipts: boolean;
  /** Whether contracts wait for their code to be read. */
  codeIsPending: boolean;
  requests: number;
  failures: number;
  reorgs: number;
  replacedBlocks: number;
  refused: Map<RefusalReason, number>;
}

/** Counts a refused answer. */
export function noteRefused({ state }: Pick<CollectorContext, 'state'>, reason: RefusalReason): void {
  state.refused.set(reason, (state.refused.get(reason) ?? 0) + 1);
}
