import type { Hex } from 'viem';
import { z } from 'zod';
import { createSingleFlight } from '../lib/tasks.ts';
import {
  accountOf,
  bigintOf,
  Contradiction,
  countOf,
  dataOf,
  type Fields,
  fieldsOf,
  listOf,
  resultOrRefusal,
  wordOf,
} from './rpc/checked.ts';
import type { ChainClient } from './rpc/client.ts';
import {
  data,
  index,
  quantity,
  type RpcCall,
  type RpcOptions,
  type RpcOutcome,
  readOutcome,
  resultOf,
  toQuantity,
  word,
} from './rpc/wire.ts';
import { kindOf, type TransactionKind } from './transaction.ts';

// Blocks, receipts and logs as nodes report them. A reader throws Contradiction where they cannot all be true.

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

/** `at` in Unix seconds: two or three blocks of Arc share one. */
export type Header = z.output<typeof headerSchema>;

export function headerCall(block: number | 'latest'): RpcCall {
  return { method: 'eth_getBlockByNumber', params: [block === 'latest' ? block : toQuantity(block), false] };
}

/** Throws UpstreamFailed when the node lacks the block: callers ask for existing ones. */
export function readHeader(outcome: RpcOutcome | undefined, block: number | 'latest'): Header {
  return readOutcome(outcome, headerSchema, `block ${block}`);
}

/** Null when the node lacks the block, such as a pruned genesis. */
export function readHeaderOrNull(outcome: RpcOutcome | undefined, block: number): Header | null {
  return resultOf(outcome, `block ${block}`) === null ? null : readHeader(outcome, block);
}

export async function readLatestHeader(chain: ChainClient, options: RpcOptions): Promise<Header> {
  const [outcome] = await chain.batch([headerCall('latest')], options);
  return readHeader(outcome, 'latest');
}

export async function readBlockNumber(chain: ChainClient, options: RpcOptions): Promise<number> {
  const [outcome] = await chain.batch([{ method: 'eth_blockNumber', params: [] }], options);
  return readOutcome(outcome, index, 'the block number');
}

const headers = createSingleFlight<Header, ChainClient>();
const numbers = createSingleFlight<number, ChainClient>();

/** One request for all who ask meanwhile. It outlives any caller; its failure reaches all. */
export function readNewestHeader(chain: ChainClient): Promise<Header> {
  return headers(chain, undefined, () => readLatestHeader(chain, {}));
}

/** Also one request for all callers, who then pin an answer's reads to this block. */
export function readNewestNumber(chain: ChainClient): Promise<number> {
  return numbers(chain, undefined, () => readBlockNumber(chain, {}));
}

export interface LinkedHeader extends Header {
  readonly hash: Hex;
  readonly parentHash: Hex;
}

interface BlockTransaction {
  readonly hash: Hex;
  readonly from: Hex;
  readonly to: Hex | null;
  readonly input: Hex;
}

export interface FullBlock {
  readonly header: LinkedHeader;
  readonly transactions: readonly BlockTransaction[];
}

export const fullBlockCall = (block: number): RpcCall => ({
  method: 'eth_getBlockByNumber',
  params: [toQuantity(block), true],
});
/** Some nodes lack this method. */
export const blockReceiptsCall = (block: number): RpcCall => ({
  method: 'eth_getBlockReceipts',
  params: [toQuantity(block)],
});

/** Its `transactions` may be hashes or whole. Throws Contradiction when it is another block. */
export function readLinkedHeader(outcome: RpcOutcome | undefined, number: number | 'latest'): LinkedHeader {
  return toHeader(blockFields(outcome, number), number);
}

/** Throws Contradiction when it is another block, or a transaction names another one. */
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
  // Callers ask for no block above a head that a provider reported.
  if (result == null) throw new Contradiction('missing', `no block ${number}`);
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

export interface Creation {
  readonly address: Hex;
  readonly deployer: Hex;
  readonly transactionHash: Hex;
}

export interface TransactionCost {
  readonly kind: TransactionKind;
  readonly gasUsed: number;
  /** In wei, priority fee included. */
  readonly effectiveGasPrice: bigint;
}

export interface BlockReceipts {
  readonly created: readonly Creation[];
  readonly costs: readonly TransactionCost[];
  /** Those whose first topic the caller asked for, in the block's order. */
  readonly logs: readonly BlockLog[];
}

/** Each transaction must have its receipt of this block, in order, and log indices must rise. */
export function readBlockReceipts(
  outcome: RpcOutcome | undefined,
  { header, transactions }: FullBlock,
  topics: ReadonlySet<string>,
): BlockReceipts {
  const result = resultOrRefusal(outcome);
  if (result == null) throw new Contradiction('missing', `no receipts of ${header.number}`);
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
      const effectiveGasPrice = bigintOf(receipt.effectiveGasPrice, 'a price');
      costs.push({ kind: kindOf(transaction), gasUsed, effectiveGasPrice });
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

/** Null when the transaction created no contract or failed. */
export function readReceiptCreation(
  outcome: RpcOutcome | undefined,
  header: LinkedHeader,
  transaction: BlockTransaction,
): Creation | null {
  const result = resultOrRefusal(outcome);
  if (result == null) throw new Contradiction('missing', `no receipt of ${transaction.hash}`);
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

/** Hex in lower case. */
export interface BlockLog {
  readonly block: number;
  /** Unix seconds. */
  readonly at: number;
  readonly transactionHash: Hex;
  readonly logIndex: number;
  readonly address: Hex;
  readonly topics: readonly Hex[];
  readonly data: Hex;
}

/** No addresses mean any; topics by position. */
export interface LogQuery {
  readonly addresses: readonly Hex[];
  readonly topics: readonly (Hex | readonly Hex[] | null)[];
}

/** Public nodes refuse 10,000 blocks and more. On Arc these are 83 minutes. */
export const MAX_LOG_SPAN = 9_999;

/** `to` included. */
export function logsCall({ addresses, topics }: LogQuery, from: number, to: number): RpcCall {
  const range = { fromBlock: toQuantity(from), toBlock: toQuantity(to) };
  return { method: 'eth_getLogs', params: [{ ...range, ...(addresses.length > 0 && { address: addresses }), topics }] };
}

export interface KnownBlocks {
  readonly from: number;
  readonly to: number;
  atOf(block: number): number;
  hashOf(block: number): Hex | null;
}

/** Where some nodes silently cut an answer (measured on Arc's public endpoints). */
const ANSWER_CAP = 20_000;

/** Null where the node refuses, or may have cut its answer. A log's own time goes before `atOf`. */
export function readLogs(outcome: RpcOutcome | undefined, { from, to, atOf, hashOf }: KnownBlocks): BlockLog[] | null {
  const result = resultOrRefusal(outcome);
  if (result === undefined) return null;
  const entries = listOf(result, 'logs');
  if (entries.length >= ANSWER_CAP) return null;
  let last = { block: -1, logIndex: -1 };
  return entries.map((entry) => {
    const fields = fieldsOf(entry, 'a log');
    const block = countOf(fields.blockNumber, 'blockNumber');
    const hash = hashOf(block);
    const foreign = hash !== null && fields.blockHash != null && wordOf(fields.blockHash, 'blockHash') !== hash;
    if (block < from || block > to || foreign) {
      throw new Contradiction('foreignLog', `a log of block ${block} in an answer for ${from} to ${to}`);
    }
    const at = fields.blockTimestamp == null ? atOf(block) : countOf(fields.blockTimestamp, 'blockTimestamp');
    const log = toLog(fields, block, at, wordOf(fields.transactionHash, 'transactionHash'));
    const inOrder = block > last.block || (block === last.block && log.logIndex > last.logIndex);
    if (!inOrder) throw new Contradiction('logOrder', `log ${block}/${log.logIndex} out of order`);
    last = log;
    return log;
  });
}

function readLog(fields: Fields, block: { number: number; at: number; hash: Hex }, transaction: Hex): BlockLog {
  const foreign =
    (fields.blockHash != null && wordOf(fields.blockHash, 'blockHash') !== block.hash) ||
    (fields.transactionHash != null && wordOf(fields.transactionHash, 'transactionHash') !== transaction);
  if (foreign) throw new Contradiction('foreignLog', `a log of another block or transaction in block ${block.number}`);
  return toLog(fields, block.number, block.at, transaction);
}

function toLog(fields: Fields, block: number, at: number, transactionHash: Hex): BlockLog {
  return {
    block,
    at,
    transactionHash,
    logIndex: countOf(fields.logIndex, 'logIndex'),
    address: accountOf(fields.address, 'address'),
    topics: listOf(fields.topics, 'topics').map((topic) => wordOf(topic, 'a topic')),
    data: dataOf(fields.data, 'data'),
  };
}
