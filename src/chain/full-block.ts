import type { Header } from './block.ts';
import type { BlockLog } from './block-logs.ts';
import { readLog } from './block-logs.ts';
import { accountOf, bigintOf, countOf, dataOf, type Fields, fieldsOf, listOf, wordOf } from './fields.ts';
import type { RpcCall } from './rpc/call.ts';
import { Contradiction, resultOrRefusal } from './rpc/checked.ts';
import { type RpcOutcome, toQuantity } from './rpc/wire.ts';
import { kindOf, type TransactionKind } from './transaction.ts';

type Hex = `0x${string}`;

/** A header with its link to the block before. */
export interface LinkedHeader extends Header {
  readonly hash: Hex;
  readonly parentHash: Hex;
}

/** The fields of a transaction that decide its kind, with its hash. */
export interface BlockTransaction {
  readonly hash: Hex;
  readonly from: Hex;
  readonly to: Hex | null;
  readonly input: Hex;
}

/** A contract that a transaction created. */
export interface Creation {
  readonly address: Hex;
  readonly deployer: Hex;
  readonly transactionHash: Hex;
}

/** What a successful transaction cost. */
export interface TransactionCost {
  readonly kind: TransactionKind;
  readonly gasUsed: number;
  /** Per gas, in wei, priority fee included. */
  readonly effectiveGasPrice: bigint;
}

/** What was read from the receipts of a block. */
export interface BlockReceipts {
  readonly created: readonly Creation[];
  readonly costs: readonly TransactionCost[];
  /** The logs whose first topic the caller asked for, in the block's order. */
  readonly logs: readonly BlockLog[];
}

/** A block with its transactions. */
export interface FullBlock {
  readonly header: LinkedHeader;
  readonly transactions: readonly BlockTransaction[];
}

/** The call for a block with whole transactions. */
export const fullBlockCall = (block: number): RpcCall => ({
  method: 'eth_getBlockByNumber',
  params: [toQuantity(block), true],
});
/** The call for all receipts of a block. Not every node has this method. */
export const blockReceiptsCall = (block: number): RpcCall => ({
  method: 'eth_getBlockReceipts',
  params: [toQuantity(block)],
});
/** The call for one receipt. */
export const receiptCall = (transaction: Hex): RpcCall => ({
  method: 'eth_getTransactionReceipt',
  params: [transaction],
});

/** Reads a header with its parent hash; `transactions` may be hashes or whole. Throws Contradiction when it is another block than `number`. */
export function readLinkedHeader(outcome: RpcOutcome | undefined, number: number | 'latest'): LinkedHeader {
  return toHeader(blockFields(outcome, number), number);
}

/** Reads a block with whole transactions. Throws Contradiction when it is another block, or when a transaction names another block. */
export function readFullBlock(outcome: RpcOutcome | undefined, number: number): FullBlock {
  const fields = blockFields(outcome, number);
  const header = toHeader(fields, number);
  const transactions = listOf(fields.transactions, 'transactions').map((entry) => {
    const tx = fieldsOf(entry, 'a transaction');
    if (tx.blockHash != null && wordOf(tx.blockHash, 'blockHash') !== header.hash)
      throw new Contradiction('foreignReceipt', `block ${number} with a transaction of another block`);
    return {
      hash: wordOf(tx.hash, 'transaction hash'),
      from: accountOf(tx.from, 'from'),
      to: tx.to == null ? null : accountOf(tx.to, 'to'),
      input: dataOf(tx.input, 'input'),
    };
  });
  return { header, transactions };
}

function blockFields(outcome: RpcOutcome | undefined, number: number | 'latest'): Fields {
  const result = resultOrRefusal(outcome);
  // Callers only ask for blocks at or below a head that a provider reported.
  if (result === null || result === undefined) throw new Contradiction('missing', `no block ${number}`);
  return fieldsOf(result, 'a block');
}

function toHeader(fields: Fields, wanted: number | 'latest'): LinkedHeader {
  const number = countOf(fields.number, 'number');
  if (wanted !== 'latest' && number !== wanted) throw new Contradiction('number', `block ${number} for ${wanted}`);
  return {
    number,
    hash: wordOf(fields.hash, 'hash'),
    parentHash: wordOf(fields.parentHash, 'parentHash'),
    at: countOf(fields.timestamp, 'timestamp'),
    gasUsed: bigintOf(fields.gasUsed, 'gasUsed'),
    gasLimit: bigintOf(fields.gasLimit, 'gasLimit'),
    extraData: dataOf(fields.extraData, 'extraData'),
    baseFeeWei: fields.baseFeePerGas == null ? null : bigintOf(fields.baseFeePerGas, 'baseFeePerGas'),
    transactionCount: listOf(fields.transactions, 'transactions').length,
  };
}

/**
 * Reads all receipts of a block and checks them against it, in this order:
 * 1. there are as many receipts as transactions; 2. each receipt is of its transaction, in order, and of this block;
 * 3. log indices rise through the block.
 */
export function readBlockReceipts(
  outcome: RpcOutcome | undefined,
  { header, transactions }: FullBlock,
  topics: ReadonlySet<string>,
): BlockReceipts {
  const result = resultOrRefusal(outcome);
  if (result === null || result === undefined) throw new Contradiction('missing', `no receipts of ${header.number}`);
  const receipts = listOf(result, 'receipts');
  if (receipts.length !== transactions.length) {
    throw new Contradiction('receiptCount', `${receipts.length} receipts of ${transactions.length} transactions`);
  }
  const created: Creation[] = [];
  const costs: TransactionCost[] = [];
  const logs: BlockLog[] = [];
  let lastIndex = -1;
  transactions.forEach((transaction, at) => {
    const receipt = fieldsOf(receipts[at], 'a receipt');
    const creation = readCreation(receipt, header, transaction);
    if (creation !== null) created.push(creation);
    if (receipt.status === '0x1' && receipt.effectiveGasPrice != null) {
      const gasUsed = countOf(receipt.gasUsed, 'gasUsed');
      costs.push({
        kind: kindOf(transaction),
        gasUsed,
        effectiveGasPrice: bigintOf(receipt.effectiveGasPrice, 'a price'),
      });
    }
    for (const entry of listOf(receipt.logs, 'logs')) {
      const log = readLog(fieldsOf(entry, 'a log'), header, transaction.hash);
      if (log.logIndex <= lastIndex) throw new Contradiction('logOrder', `log ${log.logIndex} after ${lastIndex}`);
      lastIndex = log.logIndex;
      if (topics.has(log.topics[0] ?? '')) logs.push(log);
    }
  });
  return { created, costs, logs };
}

/** The contract that a transaction created, from its own receipt. Null when the transaction created none or failed. */
export function readReceiptCreation(
  outcome: RpcOutcome | undefined,
  header: LinkedHeader,
  transaction: BlockTransaction,
): Creation | null {
  const result = resultOrRefusal(outcome);
  if (result === null || result === undefined) throw new Contradiction('missing', `no receipt of ${transaction.hash}`);
  return readCreation(fieldsOf(result, 'a receipt'), header, transaction);
}

function readCreation(receipt: Fields, header: LinkedHeader, { hash, from, to }: BlockTransaction): Creation | null {
  const matches =
    wordOf(receipt.transactionHash, 'transactionHash') === hash &&
    wordOf(receipt.blockHash, 'blockHash') === header.hash;
  if (!matches) throw new Contradiction('foreignReceipt', `a receipt that is not of block ${header.number}`);
  if (to !== null || receipt.contractAddress == null || receipt.status !== '0x1') return null;
  return { address: accountOf(receipt.contractAddress, 'contractAddress'), deployer: from, transactionHash: hash };
}
