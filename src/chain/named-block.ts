import { z } from 'zod';
import type { ChainClient } from './rpc/client.ts';
import {
  index,
  parseAnswer,
  quantity,
  type ReadStatements,
  type RpcCall,
  type RpcOptions,
  type RpcOutcome,
  resultOf,
  type Statement,
  toQuantity,
  word,
} from './rpc/wire.ts';
import { Unconfirmed } from './rpc/witnesses.ts';

/** A block that was named, as the node that answered has it. */
interface NamedBlock {
  readonly number: number;
  /** Unix seconds. */
  readonly timestamp: bigint;
}

/** The header of a named block, and the answers at it, in the order of the calls. */
interface ReadAtBlock {
  readonly block: NamedBlock;
  readonly outcomes: readonly RpcOutcome[];
}

/**
 * Reads a block's header and calls at that block, all by one request from a provider that has it. `callsAt` gets the
 * block as JSON-RPC names it. `isConfirmed`: each answer counts once two providers gave it about one block hash; one
 * that is not confirmed is an outcome `Unconfirmed`. Null when no provider has the block, and when its header is not
 * confirmed. Rejects as the client's `batch` does, and when the header is refused.
 */
export async function readAtBlock(
  chain: Pick<ChainClient, 'batch'>,
  number: number,
  callsAt: (tag: `0x${string}`) => readonly RpcCall[],
  { isConfirmed, ...rpc }: RpcOptions & { readonly isConfirmed: boolean },
): Promise<ReadAtBlock | null> {
  const tag = toQuantity(number);
  const calls = [{ method: 'eth_getBlockByNumber', params: [tag, false] }, ...callsAt(tag)];
  const options = { ...rpc, fromOneProvider: true, ...(isConfirmed && { statements: statementsAtBlock }) };
  const [first, ...outcomes] = await chain.batch(calls, options);
  if (first && 'error' in first && first.error instanceof Unconfirmed) return null;
  const header = parseAnswer(headerShape, resultOf(first, 'block header'), 'block header');
  return header?.number !== number ? null : { block: { number, timestamp: header.timestamp }, outcomes };
}

const headerShape = z.object({ number: index, timestamp: quantity, hash: word.optional() }).nullable();

/** What a provider says: the header, which begins the batch, and each answer at that block. A refusal says nothing. */
const statementsAtBlock: ReadStatements = (outcomes) => {
  const [first] = outcomes;
  const header = first && 'result' in first ? headerShape.safeParse(first.result).data : null;
  return outcomes.map((outcome, at): Statement | null => {
    if (!header || !('result' in outcome)) return null;
    const says = at === 0 ? `block ${header.number} at ${header.timestamp}` : JSON.stringify(outcome.result);
    return { about: header.hash ?? null, says };
  });
};
