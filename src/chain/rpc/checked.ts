import type { Hex } from 'viem';
import type { ChainClient } from './client.ts';
import { METHOD_NOT_FOUND, type RpcCall, type RpcOutcome } from './wire.ts';

// Answers that must be true together. Where they contradict each other, the next provider is asked for all.

/** What an answer contradicts: its shape, the request, or another part of itself. */
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

export class Contradiction extends Error {
  readonly reason: RefusalReason;
  constructor(reason: RefusalReason, detail: string) {
    super(`${reason}: ${detail}`);
    this.name = 'Contradiction';
    this.reason = reason;
  }
}

/** Sends at most 100 calls. Rejects as `batch` does when `read` accepts no provider's answers. */
export async function askChecked<T>(
  chain: ChainClient,
  calls: readonly RpcCall[],
  read: (outcomes: readonly RpcOutcome[]) => T,
  onRefused?: (reason: RefusalReason) => void,
): Promise<T> {
  let result: { value: T } | undefined;
  await chain.batch(calls, {
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

/** Undefined when the node refused the call. */
export function resultOrRefusal(outcome: RpcOutcome | undefined): unknown {
  return outcome !== undefined && 'result' in outcome ? outcome.result : undefined;
}

export function isMethodNotFound(outcome: RpcOutcome | undefined): boolean {
  return outcome !== undefined && 'error' in outcome && outcome.error.code === METHOD_NOT_FOUND;
}

// Read by hand: the first fill reads thousands of logs a second, where a schema costs several times the JSON.

export type Fields = Readonly<Record<string, unknown>>;

const WORD = /^0x[0-9a-f]{64}$/;
const ACCOUNT = /^0x[0-9a-f]{40}$/;
const DATA = /^0x(?:[0-9a-f]{2})*$/;
const QUANTITY = /^0x[0-9a-f]{1,64}$/;

export function fieldsOf(value: unknown, what: string): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : refuse(what);
}

export function listOf(value: unknown, what: string): readonly unknown[] {
  return Array.isArray(value) ? value : refuse(what);
}

export const wordOf = (value: unknown, what: string): Hex => hexOf(value, WORD, what);
export const accountOf = (value: unknown, what: string): Hex => hexOf(value, ACCOUNT, what);
export const dataOf = (value: unknown, what: string): Hex => hexOf(value, DATA, what);
export const bigintOf = (value: unknown, what: string): bigint => BigInt(hexOf(value, QUANTITY, what));

/** Above 2^53 - 1 it is refused, not rounded. */
export function countOf(value: unknown, what: string): number {
  const count = Number(hexOf(value, QUANTITY, what));
  return Number.isSafeInteger(count) ? count : refuse(what);
}

/** In lower case, as most nodes write it. */
function hexOf(value: unknown, form: RegExp, what: string): Hex {
  if (typeof value !== 'string') return refuse(what);
  if (form.test(value)) return value as Hex;
  const lower = value.toLowerCase();
  return form.test(lower) ? (lower as Hex) : refuse(what);
}

function refuse(what: string): never {
  throw new Contradiction('shape', what);
}
