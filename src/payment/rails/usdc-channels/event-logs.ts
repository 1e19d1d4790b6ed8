import { z } from 'zod';
import { MAX_LOG_SPAN } from '../../../chain/block-logs.ts';
import type { ReadStatements, Statement } from '../../../chain/rpc/call.ts';
import type { ChainClient } from '../../../chain/rpc/client.ts';
import type { Rank } from '../../../chain/rpc/rank.ts';
import { index, toQuantity, word } from '../../../chain/rpc/wire.ts';
import { UpstreamFailed } from '../../../errors.ts';
import { SETTLEMENT } from './scheme.ts';

const headerShape = z.object({ number: index, hash: word.optional() });
/** Logs as every node gives them. Nodes add members of their own, so nothing else is compared. */
const channelLogs = z.array(z.object({ topics: z.array(word), transactionHash: word, blockNumber: index }));

type ChannelLogs = z.infer<typeof channelLogs>;

/** keccak256 of `WithdrawInitiated(bytes32,uint128,uint40)`. */
export const WITHDRAW_INITIATED = '0xe4280d0d903c7f258f62b07c62f262377cbaa23f7791d78126e6446e0f0e3c23';

interface EventOptions {
  readonly signal?: AbortSignal;
  /** What the read is for; `settle` by default. */
  readonly rank?: Rank;
  /** How many blocks up to the named one are searched; MAX_LOG_SPAN by default. */
  readonly span?: number;
  /** How many places after the best provider the first one stands that is asked; 0 by default. */
  readonly turn?: number;
}

/**
 * Returns the transaction hash of each of the settlement contract's events with these topics, in the newest blocks up
 * to this one, the oldest first. Two providers must name the same ones where two or more are configured, because an
 * event that one of them hides would end an operation as failed. Rejects with UpstreamFailed when the node has not
 * reached the block, when it gives no logs, and when no two say the same.
 */
export async function eventTransactionHashes(
  chain: Pick<ChainClient, 'batch'>,
  topics: readonly (string | readonly string[])[],
  block: number,
  { signal, rank = 'settle', span = MAX_LOG_SPAN, turn = 0 }: EventOptions = {},
): Promise<string[]> {
  const range = { fromBlock: toQuantity(Math.max(0, block - span + 1)), toBlock: toQuantity(block) };
  const calls = [
    { method: 'eth_getBlockByNumber', params: [toQuantity(block), false] },
    { method: 'eth_getLogs', params: [{ address: SETTLEMENT, topics, ...range }] },
  ];
  const options = {
    rank,
    turn,
    fromOneProvider: true,
    statements: statementsOf(span),
    ...(signal && { signal }),
  } as const;
  const [header, logs] = await chain.batch(calls, options);
  const isReached = header && 'result' in header && headerShape.safeParse(header.result).data?.number === block;
  const shown = logs && 'result' in logs ? channelLogs.safeParse(logs.result).data : null;
  if (!isReached || !shown)
    throw new UpstreamFailed('chain', 'the logs of payment channels cannot be read up to the block that was asked for');
  return shown.map(({ transactionHash }) => transactionHash);
}

/**
 * Asks every provider for the logs of withdrawals in these blocks. Returns the logs of each that answers readably, and
 * a refusal of another one, where there is one. Nothing here is confirmed. Rejects when nobody answers.
 */
export async function withdrawalLogs(
  chain: Pick<ChainClient, 'each'>,
  from: number,
  to: number,
): Promise<{ readonly logs: readonly ChannelLogs[]; readonly refusal: Error | undefined }> {
  const range = { fromBlock: toQuantity(from), toBlock: toQuantity(to) };
  const filter = { address: SETTLEMENT, topics: [WITHDRAW_INITIATED], ...range };
  const answers = await chain.each([{ method: 'eth_getLogs', params: [filter] }], { rank: 'collect' });
  const logs = answers.flatMap(([outcome]) => {
    const read = outcome && 'result' in outcome ? channelLogs.safeParse(outcome.result).data : null;
    // A provider that answers another question says nothing.
    const isInRange = read?.every(({ blockNumber }) => from <= blockNumber && blockNumber <= to);
    return read && isInRange ? [read] : [];
  });
  const [refusal] = answers.flatMap(([outcome]) => (outcome && 'error' in outcome ? [outcome.error] : []));
  return { logs, refusal };
}

/**
 * The logs of one block belong to its hash. Those of a span belong to none: a node may have pruned its older blocks,
 * and that is no lie about the newest.
 */
const statementsOf =
  (span: number): ReadStatements =>
  ([first, second]) => {
    const header = first && 'result' in first ? headerShape.safeParse(first.result).data : null;
    const logs = second && 'result' in second ? channelLogs.safeParse(second.result).data : null;
    if (!header) return [null, null];
    const about = header.hash ?? null;
    const says = logs && JSON.stringify(logs.map(({ topics, transactionHash }) => [transactionHash, ...topics]));
    const said: Statement | null = says ? { about: span === 1 ? about : null, says } : null;
    return [{ about, says: `block ${header.number}` }, said];
  };
