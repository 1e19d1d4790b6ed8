import type { Rank } from './rank.ts';
import type { RpcOutcome } from './wire.ts';

/** One JSON-RPC call. */
export interface RpcCall {
  readonly method: string;
  readonly params: readonly unknown[];
}

/** `signal` ends the call with its own reason, which counts against no provider. */
export interface RpcOptions {
  readonly signal?: AbortSignal;
  /**
   * Checks the answers to at most 100 calls together. When it returns a reason, they are refused, and the next provider is asked for all of them.
   * The refused provider is held back once another provider's answers were accepted. When all are refused, none is held back.
   */
  readonly refuse?: (outcomes: readonly RpcOutcome[]) => string | null;
  /**
   * All outcomes of a batch of at most 100 calls come from one provider, by one request. Where it refuses one call because it is limited, or because it
   * lacks the method or the block, the next provider is asked for all of them. By default the next one is asked only for what was refused.
   */
  readonly fromOneProvider?: boolean;
  /** Called before each HTTP request of the call, so that a caller can keep a request budget. */
  readonly onRequest?: () => void;
  /** What the call is for; `sale` by default. While the providers limit us, calls of more important ranks go first. */
  readonly rank?: Rank;
}
