import { accountOf, countOf, dataOf, type Fields, fieldsOf, listOf, wordOf } from './fields.ts';
import type { RpcCall } from './rpc/call.ts';
import { Contradiction, resultOrRefusal } from './rpc/checked.ts';
import { type RpcOutcome, toQuantity } from './rpc/wire.ts';

type Hex = `0x${string}`;

/** An event with its place in the chain and the time of its block; hex in lower case. */
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

/** What to ask eth_getLogs for: emitters (none means any) and topics by position. */
export interface LogQuery {
  readonly addresses: readonly Hex[];
  readonly topics: readonly (Hex | readonly Hex[] | null)[];
}

/** Blocks of one eth_getLogs: public nodes refuse 10,000 and more. On Arc these are 83 minutes. */
export const MAX_LOG_SPAN = 9_999;
/** Some nodes cut large answers to this many logs and do not say so (measured on Arc's public endpoints). */
const ANSWER_CAP = 20_000;

/** The call for the logs of blocks `from` to `to`, both included. */
export function logsCall({ addresses, topics }: LogQuery, from: number, to: number): RpcCall {
  const range = { fromBlock: toQuantity(from), toBlock: toQuantity(to) };
  return { method: 'eth_getLogs', params: [{ ...range, ...(addresses.length > 0 && { address: addresses }), topics }] };
}

/** The times of a span's blocks, and the hashes of those that were read. */
export interface KnownBlocks {
  readonly from: number;
  readonly to: number;
  atOf(block: number): number;
  hashOf(block: number): Hex | null;
}

/**
 * Reads the logs of a span in order. Returns null when the node refuses the span or may have cut its answer; the caller may try a shorter span.
 * A log's own `blockTimestamp` takes precedence over `atOf`, which may be interpolated.
 */
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

/** Reads a log of a receipt. Throws Contradiction when the log names another block or transaction. */
export function readLog(fields: Fields, block: { number: number; at: number; hash: Hex }, transaction: Hex): BlockLog {
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
