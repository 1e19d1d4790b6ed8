import { BLOCK_GAS, type Call, type Chain, type Mined } from './chain.ts';
import { COLLECTOR, SETTLEMENT } from './channel-terms.ts';
import type { Hex } from './keys.ts';
import { balanceOf } from './state.ts';

/** What a node says to one call. */
export type RpcAnswer =
  | { readonly result: unknown }
  | { readonly error: { code: number; message: string; data?: unknown } };

const quantity = (value: bigint | number): Hex => `0x${BigInt(value).toString(16)}`;
const error = (code: number, message: string, data?: unknown): RpcAnswer => ({
  error: { code, message, ...(data !== undefined && { data }) },
});
/** What is asked for its code beside wallets. */
const CONTRACTS: readonly Hex[] = [SETTLEMENT, COLLECTOR];
const ZERO: Hex = `0x${'0'.repeat(40)}`;
const ZERO_WORD: Hex = `0x${'0'.repeat(64)}`;
/** Arc's own limits. */
const MOST_SPAN = 10_000;
const MOST_CALL_GAS = 30_000_000;

/** How one node differs from the chain itself. */
export interface NodeView {
  /** The newest block that it has. */
  head(): number;
  /** Whether it runs creation code in a call. */
  takesCreation(): boolean;
}

type Params = readonly unknown[];

/** A node's JSON-RPC methods over the chain, up to the block that this node has. */
export function createRpc(chain: Chain, node: NodeView) {
  const blockOf = (tag: unknown): number | null => {
    if (tag === 'latest' || tag === 'safe' || tag === 'finalized' || tag === undefined) return node.head();
    const asked = Number(tag);
    return Number.isInteger(asked) && asked >= 0 && asked <= node.head() ? asked : null;
  };
  const unknownBlock = error(-32001, 'block not found');

  function header(number: number): object {
    const inside = chain.blockAt(number);
    const gasUsed = inside.reduce((sum, one) => sum + one.gasUsed, 1_500_000);
    return {
      number: quantity(number),
      hash: chain.hashOf(number),
      parentHash: chain.hashOf(number - 1),
      timestamp: quantity(chain.timeOf(number)),
      baseFeePerGas: quantity(chain.feeAt(number)),
      gasLimit: quantity(BLOCK_GAS),
      gasUsed: quantity(gasUsed),
      extraData: `0x${chain
        .feeAt(number + 1)
        .toString(16)
        .padStart(16, '0')}`,
      transactions: inside.map(({ transaction }) => transaction.hash),
    };
  }

  function receipt({ transaction, block, index, ok, gasUsed, gasPrice, logs }: Mined): object {
    const place = { blockNumber: quantity(block), blockHash: chain.hashOf(block), transactionIndex: quantity(index) };
    return {
      ...place,
      transactionHash: transaction.hash,
      from: transaction.from,
      to: transaction.to,
      status: ok ? '0x1' : '0x0',
      gasUsed: quantity(gasUsed),
      effectiveGasPrice: quantity(gasPrice),
      contractAddress: null,
      type: '0x2',
      cumulativeGasUsed: quantity(gasUsed),
      logs: logs.map((log, at) => ({ ...log, ...place, transactionHash: transaction.hash, logIndex: quantity(at) })),
    };
  }

  function minedHere(hash: unknown): Mined | null {
    const found = chain.mined(String(hash).toLowerCase() as Hex);
    return found && found.block <= node.head() ? found : null;
  }

  function callOf(raw: Record<string, string>): Call {
    return {
      from: (raw.from?.toLowerCase() as Hex) ?? ZERO,
      to: (raw.to?.toLowerCase() as Hex) ?? null,
      data: (raw.data ?? raw.input ?? '0x').toLowerCase() as Hex,
      gas: Math.min(MOST_CALL_GAS, raw.gas === undefined ? MOST_CALL_GAS : Number(raw.gas)),
      gasPrice: BigInt(raw.gasPrice ?? raw.maxFeePerGas ?? 0),
    };
  }

  function ethCall([raw, tag]: Params): RpcAnswer {
    const block = blockOf(tag);
    if (block === null) return unknownBlock;
    const call = callOf(raw as Record<string, string>);
    if (call.to === null && !node.takesCreation()) return error(-32602, 'missing field `to`');
    const { ok, data, why } = chain.call(block, call);
    if (ok) return { result: data };
    return why === 'out of gas' ? error(-32000, 'out of gas') : error(3, `execution reverted: ${why}`, '0x');
  }

  function logs([raw]: Params): RpcAnswer {
    const { address, topics = [], fromBlock, toBlock } = raw as Record<string, never> & { topics?: unknown[] };
    const [from, to] = [
      Number(fromBlock ?? 0),
      toBlock === undefined || toBlock === 'latest' ? node.head() : Number(toBlock),
    ];
    if (to - from >= MOST_SPAN) return error(-32012, 'requested range too large');
    const fits = (wanted: unknown, had: string | undefined): boolean =>
      wanted === null || wanted === undefined || [wanted].flat().some((one) => String(one).toLowerCase() === had);
    const found = chain
      .logs()
      .filter(
        (log) =>
          log.block >= from &&
          log.block <= to &&
          log.block <= node.head() &&
          fits(address, log.address) &&
          topics.every((wanted, at) => fits(wanted, log.topics[at])),
      );
    return {
      result: found.map((log) => ({
        address: log.address,
        topics: log.topics,
        data: log.data,
        blockNumber: quantity(log.block),
        transactionHash: log.hash,
        blockHash: chain.hashOf(log.block),
        logIndex: '0x0',
        transactionIndex: '0x0',
      })),
    };
  }

  function send([raw]: Params): RpcAnswer {
    const { hash, error: refused } = chain.submit(String(raw) as Hex);
    return refused === null ? { result: hash } : error(-32000, refused);
  }

  function transaction(hash: unknown): unknown {
    const found = minedHere(hash);
    if (!found) return null;
    const { from, to, nonce, gas, data, value } = found.transaction;
    return {
      hash: found.transaction.hash,
      blockNumber: quantity(found.block),
      from,
      to,
      nonce: quantity(nonce),
      gas: quantity(gas),
      input: data,
      value: quantity(value),
      type: '0x2',
      gasPrice: quantity(found.gasPrice),
    };
  }

  const atBlock = (tag: unknown, read: (block: number) => unknown): RpcAnswer => {
    const block = blockOf(tag);
    return block === null ? unknownBlock : { result: read(block) };
  };

  return (method: string, params: Params): RpcAnswer => {
    const address = String(params[0] ?? '').toLowerCase() as Hex;
    switch (method) {
      case 'eth_chainId':
        return { result: quantity(chain.chainId) };
      case 'eth_blockNumber':
        return { result: quantity(node.head()) };
      case 'eth_gasPrice':
        return { result: quantity(chain.feeAt(node.head()) + 100_000_000n) };
      case 'eth_getBlockByNumber': {
        const block = blockOf(params[0]);
        return { result: block === null ? null : header(block) };
      }
      case 'eth_getBalance':
        return atBlock(params[1], (block) => quantity(balanceOf(chain.viewAt(block), address)));
      case 'eth_getTransactionCount':
        return atBlock(params[1], (block) => quantity(chain.viewAt(block).get(`nonce ${address}`) ?? 0));
      case 'eth_getCode':
        return atBlock(params[1], (block) =>
          CONTRACTS.includes(address) || chain.viewAt(block).get(`code ${address}`) ? '0x60016002' : '0x',
        );
      case 'eth_getStorageAt':
        // No contract of this world is a proxy.
        return atBlock(params[2], () => ZERO_WORD);
      case 'eth_call':
        return ethCall(params);
      case 'eth_getLogs':
        return logs(params);
      case 'eth_sendRawTransaction':
        return send(params);
      case 'eth_getTransactionReceipt': {
        const found = minedHere(params[0]);
        return { result: found ? receipt(found) : null };
      }
      case 'eth_getTransactionByHash':
        return { result: transaction(params[0]) };
      default:
        return error(-32601, 'method not supported');
    }
  };
}
