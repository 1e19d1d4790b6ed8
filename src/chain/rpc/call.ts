import type { Rank } from './rank.ts';
import type { RpcOutcome } from './wire.ts';

/** One JSON-RPC call. */
export interface RpcCall {
  readonly method: string;
  readonly params: readonly unknown[];
}

/**
 * What an answer says for certain. `about` is the hash of its block, or null where the answer names none. Two
 * statements about one block that say
 * different things cannot both be true.
 */
export interface Statement {
  readonly about: string | null;
  readonly says: string;
}

/**
 * Reads what one provider's answers say, an entry for each call. Null where an answer says nothing: it is missing or
 * unreadable, or `null` because what
 * was asked for is not there yet.
 */
export type ReadStatements = (
  outcomes: readonly RpcOutcome[],
  calls: readonly RpcCall[],
) => readonly (Statement | null)[];

/** `signal` ends the call with its own reason, which counts against no provider. */
export interface RpcOptions {
  readonly signal?: AbortSignal;
  /**
   * Checks the answers to at most 100 calls together. When it returns a reason, they are refused, and the next provider
   * is asked for all of them.
   * The refused provider is held back once another provider's answers were accepted. When all are refused, none is held
   * back.
   */
  readonly refuse?: (outcomes: readonly RpcOutcome[]) => string | null;
  /**
   * All outcomes of a batch of at most 100 calls come from one provider, by one request. Where it refuses one call
   * because it is limited, or because it
   * lacks the method or the block, the next provider is asked for all of them. By default the next one is asked only
   * for what was refused.
   */
  readonly fromOneProvider?: boolean;
  /**
   * Where two or more providers are configured, an answer counts once two of them gave it (`witnesses.ts`). An answer
   * that only one gives is the outcome
   * `Unconfirmed`. With one provider its word alone counts.
   */
  readonly statements?: ReadStatements;
  /**
   * For calls with `statements` that are asked again and again: the first provider alone is asked until it says
   * something.
   */
  readonly isPoll?: boolean;
  /** How many places after the best provider the first one stands that is asked. 0 by default. */
  readonly turn?: number;
  /** Called before each HTTP request of the call, so that a caller can keep a request budget. */
  readonly onRequest?: () => void;
  /** What the call is for; `sale` by default. While the providers limit us, calls of more important ranks go first. */
  readonly rank?: Rank;
}
