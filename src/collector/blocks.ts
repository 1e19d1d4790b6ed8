import {
  type BlockLog,
  type BlockReceipts,
  blockReceiptsCall,
  type Creation,
  type FullBlock,
  fullBlockCall,
  type KnownBlocks,
  type LinkedHeader,
  logsCall,
  readBlockReceipts,
  readFullBlock,
  readLinkedHeader,
  readLogs,
  readReceiptCreation,
  receiptCall,
  type TransactionCost,
} from '../chain/block.ts';
import { nextBaseFee } from '../chain/fees.ts';
import { askChecked, Contradiction, isMethodNotFound } from '../chain/rpc/checked.ts';
import type { ChainClient } from '../chain/rpc/client.ts';
import type { RpcCall, RpcOutcome } from '../chain/rpc/wire.ts';
import type { Span } from '../lib/coverage.ts';
import { type CollectorContext, noteRefused } from './context.ts';
import { dedupeLogs, firstTopicsOf } from './scan.ts';

/** A block with everything that the collector stores of it. */
export interface CollectedBlock {
  readonly block: FullBlock;
  readonly created: readonly Creation[];
  /** Empty where the node gives no receipts of whole blocks. */
  readonly costs: readonly TransactionCost[];
}

/** The checked answer about a span; `head` is null when it was not asked for. */
export interface BlocksRead {
  readonly head: LinkedHeader | null;
  readonly blocks: readonly CollectedBlock[];
  /** In the chain's order; null when the logs could not be read with the blocks. */
  readonly logs: readonly BlockLog[] | null;
}

/** What to read: the head, which must be at least `minHead`, and the blocks of `span`, which must be known to exist. */
export interface BlocksWanted {
  readonly span: Span | null;
  readonly minHead: number | null;
}

const MAX_BATCH = 100;

/** No provider has eth_getBlockReceipts. */
class NoBlockReceipts extends Error {}

/**
 * Reads whole blocks:
 * 1. blocks and their receipts in one batch, as long as some provider has eth_getBlockReceipts;
 * 2. when none has it, the collector notes this, and blocks are read with the logs that the scanners want;
 * 3. then, with one more batch for each hundred, the receipts of the transactions that create contracts.
 */
export async function readBlocks(
  context: CollectorContext,
  chain: ChainClient,
  wanted: BlocksWanted,
): Promise<BlocksRead> {
  if (context.state.hasBlockReceipts) {
    try {
      return await readWithReceipts(context, chain, wanted);
    } catch (error) {
      if (!(error instanceof NoBlockReceipts)) throw error;
      context.state.hasBlockReceipts = false;
      context.log.warn({}, 'no provider has eth_getBlockReceipts: logs and creations are read by separate requests');
    }
  }
  return readWithLogs(context, chain, wanted);
}

const numbersOf = (span: Span | null): number[] =>
  span === null ? [] : Array.from({ length: span.to - span.from + 1 }, (_, offset) => span.from + offset);

const headCalls = ({ minHead }: BlocksWanted): RpcCall[] =>
  minHead === null ? [] : [{ method: 'eth_getBlockByNumber', params: ['latest', false] }];

async function readWithReceipts(
  context: CollectorContext,
  chain: ChainClient,
  wanted: BlocksWanted,
): Promise<BlocksRead> {
  const numbers = numbersOf(wanted.span);
  const head = headCalls(wanted);
  const calls = [...head, ...numbers.map(fullBlockCall), ...numbers.map(blockReceiptsCall)];
  const topics = firstTopicsOf(context.scanners);
  const read = (outcomes: readonly RpcOutcome[]): BlocksRead => {
    const newest = readHead(wanted, outcomes[0]);
    const rest = outcomes.slice(head.length);
    const receipts: BlockReceipts[] = [];
    const blocks = numbers.map((number, at) => {
      const block = readFullBlock(rest[at], number);
      const outcome = rest[numbers.length + at];
      if (isMethodNotFound(outcome)) throw new NoBlockReceipts();
      const found = readBlockReceipts(outcome, block, topics);
      receipts.push(found);
      return { block, created: found.created, costs: found.costs };
    });
    checkLinks(newest, blocks);
    return { head: newest, blocks, logs: receipts.flatMap(({ logs }) => logs) };
  };
  return askChecked(chain, calls, read, { onRefused: (reason) => noteRefused(context, reason) });
}

async function readWithLogs(context: CollectorContext, chain: ChainClient, wanted: BlocksWanted): Promise<BlocksRead> {
  const { span } = wanted;
  const numbers = numbersOf(span);
  const head = headCalls(wanted);
  const filters = span === null ? [] : context.scanners.flatMap((scanner) => scanner.filters());
  const logCalls = span === null ? [] : filters.map((filter) => logsCall(filter, span.from, span.to));
  const onRefused = { onRefused: (reason: Contradiction['reason']) => noteRefused(context, reason) };
  const answer = await askChecked(
    chain,
    [...head, ...numbers.map(fullBlockCall), ...logCalls],
    (outcomes) => {
      const newest = readHead(wanted, outcomes[0]);
      const rest = outcomes.slice(head.length);
      const blocks = numbers.map((number, at) => ({ block: readFullBlock(rest[at], number), created: [], costs: [] }));
      const known = knownBlocks(blocks);
      const logs = logCalls.map((_, at) => readLogs(rest[numbers.length + at], known));
      const all = logs.every((found) => found !== null) ? dedupeLogs(logs.flat()) : null;
      checkLinks(newest, blocks);
      return { head: newest, blocks, logs: all };
    },
    onRefused,
  );
  const creating = answer.blocks.flatMap(({ block }) =>
    block.transactions.filter(({ to }) => to === null).map((transaction) => ({ transaction, header: block.header })),
  );
  const created: Creation[] = [];
  for (let at = 0; at < creating.length; at += MAX_BATCH) {
    const part = creating.slice(at, at + MAX_BATCH);
    const calls = part.map(({ transaction }) => receiptCall(transaction.hash));
    const read = (outcomes: readonly RpcOutcome[]) =>
      part.map(({ header, transaction }, index) => readReceiptCreation(outcomes[index], header, transaction));
    created.push(...(await askChecked(chain, calls, read, onRefused)).filter((creation) => creation !== null));
  }
  const byTransaction = new Map(created.map((creation) => [creation.transactionHash, creation]));
  const blocks = answer.blocks.map(({ block }) => ({
    block,
    created: block.transactions.flatMap(({ hash }) => byTransaction.get(hash) ?? []),
    costs: [],
  }));
  return { ...answer, blocks };
}

function knownBlocks(blocks: readonly CollectedBlock[]): KnownBlocks {
  const headers = new Map(blocks.map(({ block }) => [block.header.number, block.header]));
  const numbers = [...headers.keys()];
  return {
    from: numbers[0] ?? 0,
    to: numbers.at(-1) ?? -1,
    atOf: (block) => headers.get(block)?.at ?? 0,
    hashOf: (block) => headers.get(block)?.hash ?? null,
  };
}

/** The head; null when it was not asked for. Throws Contradiction when it is below `minHead`. */
function readHead({ minHead }: BlocksWanted, outcome: RpcOutcome | undefined): LinkedHeader | null {
  if (minHead === null) return null;
  const head = readLinkedHeader(outcome, 'latest');
  if (head.number < minHead) throw new Contradiction('staleHead', `head ${head.number} after ${minHead}`);
  return head;
}

/** Throws Contradiction unless each block is its predecessor's child, up to the head when it follows directly. */
function checkLinks(head: LinkedHeader | null, blocks: readonly CollectedBlock[]): void {
  let before: LinkedHeader | null = null;
  for (const { block } of blocks) {
    if (before !== null && block.header.parentHash !== before.hash) {
      throw new Contradiction('parent', `block ${block.header.number} does not follow the one before it`);
    }
    before = block.header;
  }
  if (head !== null && before !== null) {
    const fits =
      head.number === before.number
        ? head.hash === before.hash
        : head.number !== before.number + 1 || head.parentHash === before.hash;
    if (!fits) throw new Contradiction('parent', `head ${head.number} does not follow block ${before.number}`);
  }
}

/** The next base fee that the header announces (Arc). Null on chains where only an estimate is possible. */
export function announcedFee(header: LinkedHeader): bigint | null {
  const next = nextBaseFee(header);
  return next.exact ? next.wei : null;
}
