import {
  type BlockLog,
  type BlockReceipts,
  blockReceiptsCall,
  type Creation,
  type FullBlock,
  fullBlockCall,
  headerCall,
  type KnownBlocks,
  type LinkedHeader,
  logsCall,
  readBlockReceipts,
  readFullBlock,
  readLinkedHeader,
  readLogs,
  readReceiptCreation,
  type TransactionCost,
} from '../chain/block.ts';
import { baseFeeOf, nextBaseFee } from '../chain/fees.ts';
import { Contradiction, isMethodNotFound } from '../chain/rpc/checked.ts';
import { MAX_BATCH } from '../chain/rpc/client.ts';
import type { RpcCall, RpcOutcome } from '../chain/rpc/wire.ts';
import { kindOf, receiptCall, type TransactionKind } from '../chain/transaction.ts';
import type { Span } from '../lib/coverage.ts';
import { hexToBytes } from '../lib/hex.ts';
import { askCounted, type CollectorContext } from './context.ts';
import type { LogScanner, LogSpan, ScanWrites } from './scanner.ts';
import type { OperationCost } from './store/costs.ts';
import type { AccountRow, BlockRow, DeployRow } from './store/rows.ts';
import type { LogRows } from './store/writes.ts';

// A span of blocks, for both loops: read, checked to be a chain, prepared by the scanners, and stored at once.

interface CollectedBlock {
  readonly block: FullBlock;
  readonly created: readonly Creation[];
  /** Empty without receipts of whole blocks. */
  readonly costs: readonly TransactionCost[];
}

/** `head` is null when it was not asked for. */
export interface BlocksRead {
  readonly head: LinkedHeader | null;
  readonly blocks: readonly CollectedBlock[];
  /** In the chain's order; null when they could not be read with the blocks. */
  readonly logs: readonly BlockLog[] | null;
}

/** The head, at least `minHead`, and the blocks of `span`, which must exist. */
interface BlocksWanted {
  readonly span: Span | null;
  readonly minHead: number | null;
}

class NoBlockReceipts extends Error {}

/** With eth_getBlockReceipts as long as a provider has it, else by the scanners' logs and creations' receipts. */
export async function readBlocks(context: CollectorContext, wanted: BlocksWanted): Promise<BlocksRead> {
  if (context.state.hasBlockReceipts) {
    try {
      return await readWithReceipts(context, wanted);
    } catch (error) {
      if (!(error instanceof NoBlockReceipts)) throw error;
      context.state.hasBlockReceipts = false;
      context.log.warn({}, 'no provider has eth_getBlockReceipts: logs and creations are read by separate requests');
    }
  }
  return readWithLogs(context, wanted);
}

async function readWithReceipts(context: CollectorContext, wanted: BlocksWanted): Promise<BlocksRead> {
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
  return askCounted(context, calls, read);
}

function firstTopicsOf(scanners: readonly LogScanner[]): ReadonlySet<string> {
  return new Set(scanners.flatMap((scanner) => scanner.filters().flatMap(({ topics }) => topics[0] ?? [])));
}

async function readWithLogs(context: CollectorContext, wanted: BlocksWanted): Promise<BlocksRead> {
  const { span } = wanted;
  const numbers = numbersOf(span);
  const head = headCalls(wanted);
  const filters = span === null ? [] : context.scanners.flatMap((scanner) => scanner.filters());
  const logCalls = span === null ? [] : filters.map((filter) => logsCall(filter, span.from, span.to));
  const calls = [...head, ...numbers.map(fullBlockCall), ...logCalls];
  const answer = await askCounted(context, calls, (outcomes) => {
    const newest = readHead(wanted, outcomes[0]);
    const rest = outcomes.slice(head.length);
    const blocks = numbers.map((number, at) => ({ block: readFullBlock(rest[at], number), created: [], costs: [] }));
    const known = knownBlocks(blocks);
    const logs = logCalls.map((_, at) => readLogs(rest[numbers.length + at], known));
    const all = logs.every((found) => found !== null) ? dedupeLogs(logs.flat()) : null;
    checkLinks(newest, blocks);
    return { head: newest, blocks, logs: all };
  });
  const creating = answer.blocks.flatMap(({ block }) =>
    block.transactions.filter(({ to }) => to === null).map((transaction) => ({ transaction, header: block.header })),
  );
  const created: Creation[] = [];
  for (let at = 0; at < creating.length; at += MAX_BATCH) {
    const part = creating.slice(at, at + MAX_BATCH);
    const receipts = part.map(({ transaction }) => receiptCall(transaction.hash));
    const read = (outcomes: readonly RpcOutcome[]) =>
      part.map(({ header, transaction }, index) => readReceiptCreation(outcomes[index], header, transaction));
    created.push(...(await askCounted(context, receipts, read)).filter((creation) => creation !== null));
  }
  const byTransaction = new Map(created.map((creation) => [creation.transactionHash, creation]));
  const blocks = answer.blocks.map(({ block }) => ({
    block,
    created: block.transactions.flatMap(({ hash }) => byTransaction.get(hash) ?? []),
    costs: [],
  }));
  return { ...answer, blocks };
}

const numbersOf = (span: Span | null): number[] =>
  span === null ? [] : Array.from({ length: span.to - span.from + 1 }, (_, offset) => span.from + offset);

const headCalls = ({ minHead }: BlocksWanted): RpcCall[] => (minHead === null ? [] : [headerCall('latest')]);

function readHead({ minHead }: BlocksWanted, outcome: RpcOutcome | undefined): LinkedHeader | null {
  if (minHead === null) return null;
  const head = readLinkedHeader(outcome, 'latest');
  if (head.number < minHead) throw new Contradiction('staleHead', `head ${head.number} after ${minHead}`);
  return head;
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

/** Of several filters: sorted, each log once. */
export function dedupeLogs(logs: readonly BlockLog[]): BlockLog[] {
  const sorted = [...logs].sort((a, b) => a.block - b.block || a.logIndex - b.logIndex);
  return sorted.filter((log, at) => {
    const before = sorted[at - 1];
    return before === undefined || before.block !== log.block || before.logIndex !== log.logIndex;
  });
}

/** Throws Contradiction unless each block, and a head right above, is its predecessor's child. */
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

/** The caller checks right before `store` that the span still fits. */
interface PreparedSpan {
  readonly blocks: readonly CollectedBlock[];
  store(replaceFrom?: number): void;
}

/** Null when no block was read. */
export async function prepareSpan(
  context: CollectorContext,
  { blocks, logs }: BlocksRead,
): Promise<PreparedSpan | null> {
  const [first, last] = [blocks[0], blocks.at(-1)];
  if (first === undefined || last === undefined) return null;
  const span = { from: first.block.header.number, to: last.block.header.number };
  const scan = logs === null ? null : await prepareScan(context, { ...span, logs });
  return {
    blocks,
    store(replaceFrom) {
      const deploys = blocks.flatMap(toDeployRows);
      context.writes.storeBlocks({
        blocks: blocks.map(toBlockRow),
        deploys,
        costs: blocks.flatMap(toCosts),
        accounts: blocks.flatMap(toAccountRows),
        scan: scan && (() => scan.rows()),
        ...(replaceFrom !== undefined && { replaceFrom }),
      });
      if (deploys.length > 0) context.state.codeIsPending = true;
      // This span has every log of the scanners' first topics: only blocks above it may lack rows.
      forgetAbove(context, scan, span.to);
    },
  };
}

interface PreparedScan {
  /** Call it inside the span's transaction. */
  rows(): LogRows;
  /** From where blocks must be scanned again, or null. Call it after `rows`. */
  rescanFrom(): number | null;
}

export async function prepareScan(context: CollectorContext, span: LogSpan): Promise<PreparedScan> {
  for (const scanner of context.scanners) await scanner.prepare?.(span, context.chain, context.signal);
  let writes: ScanWrites[] = [];
  return {
    rows() {
      writes = context.scanners.map((scanner) => scanner.scan(span));
      return {
        trades: writes.flatMap(({ trades = [] }) => trades),
        tokenEvents: writes.flatMap(({ tokenEvents = [] }) => tokenEvents),
        pools: writes.flatMap(({ pools = [] }) => pools),
        tokenAccounts: writes.flatMap(({ tokenAccounts = [] }) => tokenAccounts),
      };
    },
    rescanFrom() {
      const asked = writes.flatMap(({ rescanFrom = null }) => rescanFrom ?? []);
      return asked.length === 0 ? null : Math.min(...asked);
    },
  };
}

/** When it changes, all blocks must be scanned again. */
export const keyOf = (scanners: readonly LogScanner[]): string => scanners.map(({ key }) => key).join('\n');

/** Blocks above `above` that were scanned without a new find are scanned again. */
function forgetAbove({ writes, state }: CollectorContext, scan: PreparedScan | null, above: number): void {
  const rescanFrom = scan?.rescanFrom() ?? null;
  const to = (state.next ?? 0) - 1;
  if (rescanFrom === null || to <= above) return;
  writes.forgetLogs({ from: Math.max(rescanFrom, above + 1), to });
}

function toBlockRow({ block: { header, transactions } }: CollectedBlock): BlockRow {
  const counts: Record<TransactionKind, number> = { deploy: 0, nativeTransfer: 0, tokenTransfer: 0, contractCall: 0 };
  for (const transaction of transactions) counts[kindOf(transaction)] += 1;
  return {
    number: header.number,
    at: header.at,
    hash: hexToBytes(header.hash),
    parentHash: hexToBytes(header.parentHash),
    baseFee: baseFeeOf(header),
    nextBaseFee: announcedFee(header),
    utilisation: header.gasLimit === 0n ? 0 : Number(header.gasUsed) / Number(header.gasLimit),
    gasLimit: header.gasLimit,
    transactions: transactions.length,
    deploys: counts.deploy,
    nativeTransfers: counts.nativeTransfer,
    tokenTransfers: counts.tokenTransfer,
    contractCalls: counts.contractCall,
  };
}

/** The next base fee, where the header announces it (Arc). */
function announcedFee(header: LinkedHeader): bigint | null {
  const next = nextBaseFee(header);
  return next.exact ? next.wei : null;
}

function toDeployRows({ block: { header }, created }: CollectedBlock): DeployRow[] {
  return created.map(({ address, deployer, transactionHash }) => ({
    block: header.number,
    at: header.at,
    address: hexToBytes(address),
    deployer: hexToBytes(deployer),
    transactionHash: hexToBytes(transactionHash),
  }));
}

/** The accounts that transactions, failed ones too, came from, were addressed to or created; each once. */
function toAccountRows({ block: { header, transactions }, created }: CollectedBlock): AccountRow[] {
  const seen = new Set(transactions.flatMap(({ from, to }) => (to === null ? [from] : [from, to])));
  for (const { address } of created) seen.add(address);
  return [...seen].map((account) => ({ block: header.number, at: header.at, account: hexToBytes(account) }));
}

function toCosts({ block: { header }, costs }: CollectedBlock): OperationCost[] {
  return costs.map((cost) => ({ ...cost, at: header.at, baseFee: baseFeeOf(header) }));
}

/** True also when the block is not stored whole: nothing contradicts the hash. */
export function isStoredAs({ lookups }: CollectorContext, number: number, hash: `0x${string}`): boolean {
  const stored = lookups.hashOf(number);
  return stored === null || stored.equals(hexToBytes(hash));
}

/** The stored neighbour that does not fit blocks `first` to `last`; null when both fit or are not stored. */
export function misfit(context: CollectorContext, first: LinkedHeader, last: LinkedHeader): number | null {
  if (!isStoredAs(context, first.number - 1, first.parentHash)) return first.number - 1;
  const above = context.lookups.parentOf(last.number + 1);
  return above === null || above.equals(hexToBytes(last.hash)) ? null : last.number + 1;
}

/** Headers in one request: more than any reorg seen. */
const STEP = 32;

/** Stored blocks from `from` on that differ from the chain's. A right one ends the search: hashes chain the rest. */
export async function findStale(context: CollectorContext, from: number, step: -1 | 1): Promise<Span | null> {
  let last: number | null = null;
  for (let at = from; ; at += step * STEP) {
    const numbers = Array.from({ length: STEP }, (_, offset) => at + step * offset).filter(
      (number) => context.lookups.hashOf(number) !== null,
    );
    const headers = await readHeaders(context, numbers);
    for (let offset = 0; offset < STEP; offset += 1) {
      const number = at + step * offset;
      const header = headers.get(number);
      if (header === undefined || isStoredAs(context, number, header.hash)) {
        return last === null ? null : { from: Math.min(from, last), to: Math.max(from, last) };
      }
      last = number;
    }
  }
}

async function readHeaders(
  context: CollectorContext,
  numbers: readonly number[],
): Promise<ReadonlyMap<number, LinkedHeader>> {
  if (numbers.length === 0) return new Map();
  const read = (outcomes: readonly RpcOutcome[]) =>
    new Map(numbers.map((number, at) => [number, readLinkedHeader(outcomes[at], number)]));
  return askCounted(context, numbers.map(headerCall), read);
}

/** Arc's finality is deterministic: the node or the chain is at fault. */
export function alarm({ log, state }: CollectorContext, stale: Span): void {
  const blocks = stale.to - stale.from + 1;
  state.reorgs += 1;
  state.replacedBlocks += blocks;
  log.error(
    { from: stale.from, to: stale.to, blocks },
    'ALARM: stored blocks are no longer those of the chain; they are read again',
  );
}
