import { MAX_LOG_SPAN } from '../../../chain/block-logs.ts';
import type { ChainClient } from '../../../chain/rpc/client.ts';
import { toQuantity } from '../../../chain/rpc/wire.ts';
import { UpstreamFailed } from '../../../errors.ts';
import { SETTLEMENT } from './scheme.ts';

/**
 * Returns the transaction hash of each of the settlement contract's events with these topics, in the newest MAX_LOG_SPAN blocks up to this one, the oldest first.
 * One batch reads the logs and the node's head, because a node that is behind may leave out the newest blocks. Rejects with UpstreamFailed when the node has
 * not reached the block, or gives no logs.
 */
export async function eventTransactionHashes(
  chain: Pick<ChainClient, 'batch'>,
  topics: readonly (string | readonly string[])[],
  block: number,
  signal?: AbortSignal,
): Promise<string[]> {
  const range = { fromBlock: toQuantity(Math.max(0, block - MAX_LOG_SPAN + 1)), toBlock: toQuantity(block) };
  const calls = [
    { method: 'eth_blockNumber', params: [] },
    { method: 'eth_getLogs', params: [{ address: SETTLEMENT, topics, ...range }] },
  ];
  const [head, logs] = await chain.batch(calls, { rank: 'settle', fromOneProvider: true, ...(signal && { signal }) });
  const isReached = head && 'result' in head && Number(head.result) >= block;
  if (!isReached || !logs || !('result' in logs) || !Array.isArray(logs.result))
    throw new UpstreamFailed('chain', 'the logs of payment channels cannot be read up to the block that was asked for');
  return (logs.result as { transactionHash: string }[]).map(({ transactionHash }) => transactionHash);
}
