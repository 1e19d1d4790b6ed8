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

interface NamedBlock {
  readonly number: number;
  /** Unix seconds. */
  readonly timestamp: bigint;
}

interface ReadAtBlock {
  readonly block: NamedBlock;
  readonly outcomes: readonly RpcOutcome[];
}

/**
 * By one request. `isConfirmed`: an answer counts once two providers gave it about one block hash, else it is
 * `Unconfirmed`. Null when nobody has the block, or its header is not confirmed.
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

/** The header, which begins the batch, and each answer at that block. A refusal says nothing. */
const statementsAtBlock: ReadStatements = (outcomes) => {
  const [first] = outcomes;
  const header = first && 'result' in first ? headerShape.safeParse(first.result).data : null;
  return outcomes.map((outcome, at): Statement | null => {
    if (!header || !('result' in outcome)) return null;
    const says = at === 0 ? `block ${header.number} at ${header.timestamp}` : JSON.stringify(outcome.result);
    return { about: header.hash ?? null, says };
  });
};
