import { z } from 'zod';
import { UpstreamFailed } from '../errors.ts';
import { SELECTORS } from './abi.ts';
import type { ChainClient, RpcOptions } from './rpc/client.ts';
import { account, data, index, quantity, readOutcome, word } from './rpc/wire.ts';

const transactionSchema = z.object({
  hash: word,
  blockNumber: index.nullish(),
  from: account,
  to: account.nullish(),
  value: quantity,
  input: data,
});

const logSchema = z.object({ address: account, topics: z.array(word), data, logIndex: index });

const receiptSchema = z.object({
  transactionHash: word,
  blockNumber: index,
  status: z.enum(['0x0', '0x1']),
  gasUsed: index,
  effectiveGasPrice: quantity,
  contractAddress: account.nullish(),
  logs: z.array(logSchema),
});

/** The fields of a transaction that we read; amounts in wei. */
export type Transaction = z.output<typeof transactionSchema>;
/** An event as its contract wrote it. */
export type Log = z.output<typeof logSchema>;
/** The outcome of a mined transaction. */
export type Receipt = z.output<typeof receiptSchema>;

/** A transaction as one node sees it. `receipt` is null while it is pending. `head` is at least the block that holds it. */
export interface TransactionRead {
  readonly head: number;
  readonly transaction: Transaction;
  readonly receipt: Receipt | null;
}

/** Reads a transaction and its receipt in one batch, so that both come from one node. Null when the node does not know the hash. */
export async function readTransaction(
  chain: ChainClient,
  hash: `0x${string}`,
  options: RpcOptions,
): Promise<TransactionRead | null> {
  const [head, found, settled] = await chain.batch(
    [
      { method: 'eth_blockNumber', params: [] },
      { method: 'eth_getTransactionByHash', params: [hash] },
      { method: 'eth_getTransactionReceipt', params: [hash] },
    ],
    options,
  );
  const number = readOutcome(head, index, 'the block number');
  const transaction = readOutcome(found, transactionSchema.nullable(), 'transaction');
  const receipt = readOutcome(settled, receiptSchema.nullable(), 'receipt');
  if (transaction === null) return null;
  if ([transaction.hash, receipt?.transactionHash ?? hash].some((answered) => answered !== hash)) {
    throw new UpstreamFailed('chain', 'answered about another transaction');
  }
  if (receipt === null && transaction.blockNumber != null) {
    throw new UpstreamFailed('chain', 'gave no receipt for a mined transaction');
  }
  // A block may arrive between two entries of a batch.
  return { head: Math.max(number, receipt?.blockNumber ?? 0), transaction, receipt };
}

/** What a transaction does, as its own fields show it. */
export type TransactionKind = 'deploy' | 'nativeTransfer' | 'tokenTransfer' | 'contractCall';

const TOKEN_TRANSFERS: ReadonlySet<string> = new Set(
  Object.entries(SELECTORS)
    .filter(([signature]) => /^(transfer|receive)/.test(signature))
    .map(([, selector]) => selector),
);

/**
 * 1. no recipient: deploy; 2. no input: nativeTransfer; 3. a call of one of ERC-20's or EIP-3009's transfer functions: tokenTransfer; 4. else contractCall.
 * The transaction alone decides, so that counting many needs no receipts.
 */
export function kindOf({ to, input }: Pick<Transaction, 'to' | 'input'>): TransactionKind {
  if (to == null) return 'deploy';
  if (input === '0x') return 'nativeTransfer';
  return TOKEN_TRANSFERS.has(input.slice(0, 10).toLowerCase()) ? 'tokenTransfer' : 'contractCall';
}
