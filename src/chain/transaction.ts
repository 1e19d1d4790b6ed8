import { z } from 'zod';
import { UpstreamFailed } from '../errors.ts';
import { SELECTORS } from './contracts.ts';
import type { ChainClient } from './rpc/client.ts';
import {
  account,
  data,
  index,
  quantity,
  type RpcCall,
  type RpcOptions,
  type RpcOutcome,
  readOutcome,
  word,
} from './rpc/wire.ts';

const transactionSchema = z
  .object({
    hash: word,
    blockNumber: index.nullish(),
    from: account,
    to: account.nullish(),
    value: quantity,
    input: data,
    nonce: index,
    gas: index,
    gasPrice: quantity.nullish(),
    maxFeePerGas: quantity.nullish(),
    maxPriorityFeePerGas: quantity.nullish(),
  })
  .transform((transaction, context) => {
    // Nodes give `gasPrice` to all types: it is the sender's word only without a maximum.
    const maxFeePerGas = transaction.maxFeePerGas ?? transaction.gasPrice;
    if (maxFeePerGas != null) return { ...transaction, maxFeePerGas };
    context.addIssue('neither a gas price nor a maximum');
    return z.NEVER;
  });

const logSchema = z.object({
  address: account,
  topics: z.array(word),
  data: data.transform((text) => text.toLowerCase() as `0x${string}`),
  logIndex: index,
});

const receiptSchema = z.object({
  transactionHash: word,
  blockNumber: index,
  status: z.enum(['0x0', '0x1']),
  gasUsed: index,
  effectiveGasPrice: quantity,
  contractAddress: account.nullish(),
  logs: z.array(logSchema),
});

/** In wei. `maxFeePerGas` is the gas price of a transaction without a maximum. */
export type Transaction = z.output<typeof transactionSchema>;
export type Log = z.output<typeof logSchema>;
export type Receipt = z.output<typeof receiptSchema>;

/** As one node sees it. `receipt` is null while it is pending. `head` is at least its block. */
export interface TransactionRead {
  readonly head: number;
  readonly transaction: Transaction;
  readonly receipt: Receipt | null;
}

/** From one provider. Null when it does not know the hash. */
export async function readTransaction(
  chain: ChainClient,
  hash: `0x${string}`,
  options: RpcOptions,
): Promise<TransactionRead | null> {
  const [head, found, settled] = await chain.batch(
    [
      { method: 'eth_blockNumber', params: [] },
      { method: 'eth_getTransactionByHash', params: [hash] },
      receiptCall(hash),
    ],
    { ...options, fromOneProvider: true },
  );
  const number = readOutcome(head, index, 'the block number');
  const transaction = readOutcome(found, transactionSchema.nullable(), 'transaction');
  const receipt = readReceipt(settled, hash);
  if (transaction === null) return null;
  if (transaction.hash !== hash) throw anotherTransaction();
  if (receipt === null && transaction.blockNumber != null) {
    throw new UpstreamFailed('chain', 'gave no receipt for a mined transaction');
  }
  // A block may arrive between two entries of a batch.
  return { head: Math.max(number, receipt?.blockNumber ?? 0), transaction, receipt };
}

export function receiptCall(hash: string): RpcCall {
  return { method: 'eth_getTransactionReceipt', params: [hash] };
}

/** Null while it is not mined. Throws UpstreamFailed for another transaction's. */
export function readReceipt(outcome: RpcOutcome | undefined, hash: string): Receipt | null {
  const receipt = readOutcome(outcome, receiptSchema.nullable(), 'receipt');
  if (receipt !== null && receipt.transactionHash !== hash) throw anotherTransaction();
  return receipt;
}

function anotherTransaction(): UpstreamFailed {
  return new UpstreamFailed('chain', 'answered about another transaction');
}

export type TransactionKind = 'deploy' | 'nativeTransfer' | 'tokenTransfer' | 'contractCall';

const TOKEN_TRANSFERS: ReadonlySet<string> = new Set(
  Object.entries(SELECTORS)
    .filter(([signature]) => /^(transfer|receive)/.test(signature))
    .map(([, selector]) => selector),
);

/** By the transaction alone, without its receipt. Token transfers are ERC-20's and EIP-3009's. */
export function kindOf({ to, input }: Pick<Transaction, 'to' | 'input'>): TransactionKind {
  if (to == null) return 'deploy';
  if (input === '0x') return 'nativeTransfer';
  return TOKEN_TRANSFERS.has(input.slice(0, 10).toLowerCase()) ? 'tokenTransfer' : 'contractCall';
}
