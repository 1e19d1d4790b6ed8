import type { RpcCall } from './call.ts';
import type { ChainClient, RpcOptions, RpcOutcome } from './client.ts';

/** What an answer contradicts: its own shape, the question, or another part of itself. */
export type RefusalReason =
  | 'shape'
  | 'missing'
  | 'genesis'
  | 'number'
  | 'parent'
  | 'receiptCount'
  | 'foreignReceipt'
  | 'foreignLog'
  | 'logOrder'
  | 'feeHistory'
  | 'staleHead';

/** Thrown by a reader of answers that cannot all be true; nothing of them may be stored. */
export class Contradiction extends Error {
  readonly reason: RefusalReason;
  constructor(reason: RefusalReason, detail: string) {
    super(`${reason}: ${detail}`);
    this.name = 'Contradiction';
    this.reason = reason;
  }
}

/** `onRefused` is told of every provider's refused answer. */
export interface CheckedOptions extends RpcOptions {
  readonly onRefused?: (reason: RefusalReason) => void;
}

/**
 * Asks a batch of at most 100 calls and reads its answers; when `read` throws a Contradiction, the next provider is asked for all of it.
 * Rejects like `batch` does when no provider gives answers that `read` accepts.
 */
export async function askChecked<T>(
  chain: ChainClient,
  calls: readonly RpcCall[],
  read: (outcomes: readonly RpcOutcome[]) => T,
  { onRefused, ...rpc }: CheckedOptions = {},
): Promise<T> {
  let result: { value: T } | undefined;
  await chain.batch(calls, {
    ...rpc,
    refuse(outcomes) {
      try {
        result = { value: read(outcomes) };
        return null;
      } catch (error) {
        if (!(error instanceof Contradiction)) throw error;
        onRefused?.(error.reason);
        return error.message;
      }
    },
  });
  if (result === undefined) throw new Error('a client that does not let its answers be judged');
  return result.value;
}

/** The result of one call, or undefined when the node refused it. */
export function resultOrRefusal(outcome: RpcOutcome | undefined): unknown {
  return outcome !== undefined && 'result' in outcome ? outcome.result : undefined;
}
