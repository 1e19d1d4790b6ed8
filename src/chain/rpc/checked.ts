import { METHOD_NOT_FOUND } from './answers.ts';
import type { RpcCall, RpcOptions } from './call.ts';
import type { ChainClient } from './client.ts';
import type { RpcOutcome } from './wire.ts';

/** What an answer contradicts: its expected shape, the request, or another part of itself. */
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

/** A reader of answers throws this when they cannot all be true. The caller stores nothing of them. */
export class Contradiction extends Error {
  readonly reason: RefusalReason;
  constructor(reason: RefusalReason, detail: string) {
    super(`${reason}: ${detail}`);
    this.name = 'Contradiction';
    this.reason = reason;
  }
}

/** `onRefused` is called for each answer that was refused. */
export interface CheckedOptions extends RpcOptions {
  readonly onRefused?: (reason: RefusalReason) => void;
}

/**
 * Sends a batch of at most 100 calls and reads its answers. When `read` throws a Contradiction, the next provider is asked for the whole batch.
 * Rejects as `batch` does when no provider gives answers that `read` accepts.
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
  if (result === undefined) throw new Error('the chain client did not call `refuse`');
  return result.value;
}

/** The result of one call, or undefined when the node refused it. */
export function resultOrRefusal(outcome: RpcOutcome | undefined): unknown {
  return outcome !== undefined && 'result' in outcome ? outcome.result : undefined;
}

/** Whether no provider has the method of this call. */
export function isMethodNotFound(outcome: RpcOutcome | undefined): boolean {
  return outcome !== undefined && 'error' in outcome && outcome.error.code === METHOD_NOT_FOUND;
}
