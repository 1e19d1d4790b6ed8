import { z } from 'zod';
import type { RpcCall, RpcOptions } from './rpc/call.ts';
import type { ChainClient } from './rpc/client.ts';
import { data, index, quantity, type RpcOutcome, readOutcome, resultOf, toQuantity, word } from './rpc/wire.ts';

const headerSchema = z
  .object({
    number: index,
    hash: word,
    timestamp: index,
    gasUsed: quantity,
    gasLimit: quantity,
    extraData: data,
    baseFeePerGas: quantity.nullish(),
    transactions: z.array(z.unknown()),
  })
  .transform(({ timestamp, baseFeePerGas, transactions, ...rest }) => ({
    ...rest,
    at: timestamp,
    baseFeeWei: baseFeePerGas ?? null,
    transactionCount: transactions.length,
  }));

/** A block without its transactions; `at` in Unix seconds (on Arc two or three neighbours share one). */
export type Header = z.output<typeof headerSchema>;

/** The call that reads one header, for use inside a larger batch. */
export function headerCall(block: number | 'latest'): RpcCall {
  return { method: 'eth_getBlockByNumber', params: [block === 'latest' ? block : toQuantity(block), false] };
}

/** The header that answers `headerCall`. Throws UpstreamFailed when the node lacks the block, because callers only ask for blocks that exist. */
export function readHeader(outcome: RpcOutcome | undefined, block: number | 'latest'): Header {
  return readOutcome(outcome, headerSchema, `block ${block}`);
}

/** Like `readHeader`, but returns null when the node lacks the block, such as a pruned genesis. */
export function readHeaderOrNull(outcome: RpcOutcome | undefined, block: number): Header | null {
  return resultOf(outcome, `block ${block}`) === null ? null : readHeader(outcome, block);
}

/** The newest block; on Arc also the final one. */
export async function readLatestHeader(chain: ChainClient, options: RpcOptions): Promise<Header> {
  const [outcome] = await chain.batch([headerCall('latest')], options);
  return readHeader(outcome, 'latest');
}

/** The number of the newest block. All reads of one answer are then made at this block. */
export async function readBlockNumber(chain: ChainClient, options: RpcOptions): Promise<number> {
  const [outcome] = await chain.batch([{ method: 'eth_blockNumber', params: [] }], options);
  return readOutcome(outcome, index, 'the block number');
}
