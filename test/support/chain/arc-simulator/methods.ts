import { RpcFault } from '../rpc-server.ts';
import { GAS_LIMIT, type SimBlock, type SimChain } from './chain.ts';
import { blockJson, logsJson, receiptsJson } from './json.ts';
import { codeOf, type Hex, hex } from './transactions.ts';

/** What a node of the simulated chain can do. */
export interface MethodOptions {
  readonly chain: SimChain;
  /** The newest block that this node has. */
  readonly head: () => number;
  readonly chainId: number;
  readonly hasBlockReceipts: boolean;
  readonly hasFeeHistory: boolean;
  /** Blocks below are gone, genesis too. */
  readonly prunedBelow: () => number;
}

/** Limits measured on Arc's public endpoints. */
const MAX_LOG_SPAN = 10_000;
const MAX_TOPICS = 8;
const MAX_FEE_SPAN = 1024;

interface LogQuery {
  readonly fromBlock: Hex;
  readonly toBlock: Hex;
  readonly address?: readonly Hex[];
  readonly topics?: readonly (Hex | readonly Hex[] | null)[];
}

export type Method = (params: unknown[]) => unknown;

/** The methods of a public Arc node that a collector may use; anything else is -32601. */
export function createMethods(options: MethodOptions): Record<string, Method> {
  const { chain, head, chainId } = options;
  const byTag = (tag: unknown): SimBlock | null => {
    if (tag === 'pending') return null;
    const number = tag === 'latest' || tag === 'finalized' || tag === 'safe' ? head() : Number(tag);
    return number <= head() && number >= options.prunedBelow() ? chain.block(number) : null;
  };
  const findTransaction = (hash: unknown) => {
    for (let number = head(); number >= 0; number -= 1) {
      const at = chain.block(number).transactions.findIndex((transaction) => transaction.hash === hash);
      if (at !== -1) return receiptsJson(chain.block(number))[at];
    }
    return null;
  };
  const methods: Record<string, Method> = {
    eth_chainId: () => hex(chainId),
    eth_blockNumber: () => hex(head()),
    eth_getBlockByNumber: ([tag, whole]) => {
      const block = byTag(tag);
      return block && blockJson(block, whole === true);
    },
    eth_getTransactionReceipt: ([hash]) => findTransaction(hash),
    eth_getCode: ([address]) => codeOf(address as Hex),
    eth_getLogs: ([query]) => findLogs(chain, query as LogQuery, head()),
  };
  if (options.hasBlockReceipts) {
    methods.eth_getBlockReceipts = ([tag]) => {
      const block = byTag(tag);
      return block && receiptsJson(block);
    };
  }
  if (options.hasFeeHistory)
    methods.eth_feeHistory = ([count, newest]) => feeHistory(chain, Number(count), Number(newest), head());
  return methods;
}

function findLogs(chain: SimChain, query: LogQuery, head: number) {
  const [from, to] = [Number(query.fromBlock), Math.min(Number(query.toBlock), head)];
  const wanted = (query.topics ?? []).map((topic) => (topic === null ? null : new Set([topic].flat())));
  if (to - from + 1 >= MAX_LOG_SPAN || (wanted[0]?.size ?? 0) > MAX_TOPICS) {
    throw new RpcFault(-32012, 'requested range too large');
  }
  const emitters = query.address && new Set(query.address);
  const blocks = Array.from({ length: Math.max(0, to - from + 1) }, (_, offset) => chain.block(from + offset));
  return blocks
    .flatMap((block) => logsJson(block).flat())
    .filter((log) => {
      if (emitters && !emitters.has(log.address)) return false;
      return wanted.every((topics, at) => topics === null || topics.has(log.topics[at] ?? '0x'));
    });
}

function feeHistory(chain: SimChain, count: number, newest: number, head: number) {
  if (newest > head) throw new RpcFault(-32602, 'block not found');
  const kept = Math.min(count, MAX_FEE_SPAN, newest + 1);
  const blocks = Array.from({ length: kept }, (_, offset) => chain.block(newest - kept + 1 + offset));
  return {
    oldestBlock: hex(newest - kept + 1),
    baseFeePerGas: [...blocks.map(({ baseFee }) => hex(baseFee)), hex(blocks.at(-1)!.nextBaseFee)],
    gasUsedRatio: blocks.map(({ gasUsed }) => Number(gasUsed) / Number(GAS_LIMIT)),
  };
}
