import { randomBytes } from 'node:crypto';
import { type Abi, decodeFunctionData, encodeEventTopics, encodeFunctionResult, type Hex, parseAbi } from 'viem';
import { encodeAbiParameters } from 'viem/utils';
import { artifacts } from '../../../dev/contracts.ts';
import type { ChainClient } from '../../../src/chain/rpc/client.ts';
import { RpcError, type RpcOptions, type RpcOutcome } from '../../../src/chain/rpc/wire.ts';
import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import { SETTLEMENT } from '../../../src/payment/channels/scheme.ts';
import type { MinedTransaction, Operation, OperationOutcome } from '../../../src/payment/settler.ts';
import type { ChannelConfig, ChannelState } from '../../../src/store/ports/channel-state.ts';
import { aloneAgreed } from '../chain/alone-agreed.ts';
import { scheme } from './channel-payment.ts';

const abi = artifacts.BatchSettlement.abi as Abi;
const multicall = parseAbi([
  'struct Call3 { address target; bool allowFailure; bytes callData; }',
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3(Call3[] calls) payable returns (Result[] returnData)',
  'function getBlockNumber() view returns (uint256)',
]);
const SENDER = `0x${'5e'.repeat(20)}` as const;
/** What the contract holds of a channel without a deposit. */
const EMPTY = { balance: 0n, totalClaimed: 0n, withdrawAmount: 0n, withdrawAt: 0, refundNonce: 0n };

type Held = Omit<ChannelState, 'block'>;
type Log = MinedTransaction['logs'][number] & { readonly block: number; readonly transactionHash: string };
interface Struct {
  readonly voucher: { readonly channel: Record<keyof ChannelConfig, string | number> };
  readonly totalClaimed: bigint;
}

/** The settlement contract's bookkeeping in memory, behind the requests that a node takes. It checks no signature. Blocks are made by `mine` alone. */
export function createContractStandIn() {
  const held = new Map<string, Held>();
  const logs: Log[] = [];
  const mined: MinedTransaction[] = [];

  const self = {
    held,
    /** Every mined transaction, oldest first. */
    mined,
    block: 1000,
    /** Every request, with its options. */
    asked: [] as ({ method: string; params: readonly unknown[] } & Pick<
      RpcOptions,
      'rank' | 'turn' | 'signal' | 'fromOneProvider'
    >)[],
    /** Ids of channels whose rows the contract refuses. */
    refusedRows: new Set<string>(),
    isSweepRefused: false,
    /** Called before each request; what it throws is the answer. */
    before: (_method: string, _params: readonly unknown[]): void => {},
    put(id: Uint8Array, more: Partial<Held>): void {
      held.set(bytesToHex(id), { ...EMPTY, ...held.get(bytesToHex(id)), ...more });
    },
    of: (id: Uint8Array): Held => held.get(bytesToHex(id)) ?? EMPTY,
    /** Mines a call of the contract in a block of its own. A call that the contract refuses reverts. */
    mine(calldata: Uint8Array): MinedTransaction {
      const saved = new Map(held);
      let made: Made[] = [];
      let status = '0x1';
      try {
        made = execute(bytesToHex(calldata));
      } catch {
        status = '0x0';
        for (const [id, before] of saved) held.set(id, before);
      }
      return self.mineLogs(made, status);
    },
    /** Mines a transaction with these logs. */
    mineLogs(made: readonly Made[], status = '0x1'): MinedTransaction {
      self.block += 1;
      const transactionHash = `0x${randomBytes(32).toString('hex')}`;
      const blockNumber = `0x${self.block.toString(16)}`;
      const own = made.map((log) => ({ ...log, block: self.block, blockNumber, transactionHash }));
      logs.push(...own);
      const receipt = { transactionHash, blockNumber, status, gasUsed: '0x5208', logs: own };
      mined.push(receipt);
      return receipt;
    },
    /** A log of the contract. */
    event: eventOf,
    chain: {
      request: async <T>(method: string, params: readonly unknown[], options: RpcOptions = {}): Promise<T> => {
        self.asked.push({ method, params, ...options });
        self.before(method, params);
        return answer(method, params) as T;
      },
      batch: async (
        calls: readonly { method: string; params: readonly unknown[] }[],
        options: RpcOptions = {},
      ): Promise<RpcOutcome[]> =>
        calls.map(({ method, params }): RpcOutcome => {
          self.asked.push({ method, params, ...options });
          try {
            self.before(method, params);
            return { result: answer(method, params) };
          } catch (error) {
            if (error instanceof RpcError) return { error };
            throw error;
          }
        }),
      each: async (calls: Parameters<ChainClient['each']>[0], options: RpcOptions = {}): Promise<RpcOutcome[][]> => [
        await self.chain.batch(calls, options),
      ],
      agreed: aloneAgreed(async (): Promise<number> => self.block),
    } satisfies Pick<ChainClient, 'request' | 'batch' | 'each' | 'agreed'>,
    /** What a node answers. Throws RpcError for a call that it refuses. */
    answer: (method: string, params: readonly unknown[]): unknown => answer(method, params),
    /** The relayer's port: notes the transaction, mines it, and judges it by its receipt. */
    async operate(operation: Operation): Promise<OperationOutcome> {
      const receipt = self.mine(operation.data);
      if (!(await operation.note(hexToBytes(receipt.transactionHash)))) return { kind: 'unknown' };
      return operation.readReceipt(receipt) ?? { kind: 'failed', reason: 'no event' };
    },
  };
  return self;

  function execute(data: Hex): Made[] {
    const { functionName, args } = decodeFunctionData({ abi, data });
    const [first, second, third] = args as [never, never, never];
    if (functionName === 'multicall') return (first as Hex[]).flatMap(execute);
    if (functionName === 'claimWithSignature') return (first as Struct[]).flatMap(claim);
    if (functionName === 'settle') {
      if (self.isSweepRefused) throw new Error('Blocked');
      return [eventOf('Settled', [first, second, SENDER], [7n])];
    }
    if (functionName === 'refundWithSignature') return refund(configOf(first), second, third);
    throw new Error(`the stand-in has no ${functionName}`);
  }

  function claim({ voucher, totalClaimed }: Struct): Made[] {
    const id = scheme.channelId(configOf(voucher.channel));
    if (self.refusedRows.has(bytesToHex(id))) throw new Error('InvalidSignature');
    const before = self.of(id);
    if (totalClaimed > before.balance) throw new Error('ExceedsBalance');
    if (totalClaimed <= before.totalClaimed) return [];
    self.put(id, { totalClaimed });
    return [eventOf('Claimed', [bytesToHex(id), SENDER], [totalClaimed - before.totalClaimed, totalClaimed])];
  }

  function refund(config: ChannelConfig, amount: bigint, nonce: bigint): Made[] {
    const id = scheme.channelId(config);
    const { refundNonce, balance, totalClaimed } = self.of(id);
    if (nonce !== refundNonce) throw new Error('InvalidNonce');
    const left = balance - totalClaimed;
    const paid = amount < left ? amount : left;
    self.put(id, { refundNonce: nonce + 1n, balance: balance - paid });
    return paid > 0n ? [eventOf('Refunded', [bytesToHex(id), SENDER], [paid])] : [];
  }

  function answer(method: string, params: readonly unknown[]): unknown {
    const [first, second] = params as [never, string | undefined];
    if (method === 'eth_getCode') return '0x60';
    if (method === 'eth_blockNumber') return `0x${self.block.toString(16)}`;
    if (method === 'eth_getTransactionReceipt')
      return mined.find(({ transactionHash }) => transactionHash === first) ?? null;
    if (method === 'eth_getLogs') return logs.filter((log) => isAskedFor(log, first));
    if (method === 'eth_getBlockByNumber') return headerOf(Number(first));
    if (method === 'eth_call')
      return called(first, second === undefined || second === 'latest' ? self.block : Number(second));
    throw new Error(`the stand-in has no ${method}`);
  }

  function headerOf(number: number): object | null {
    const hash = `0x${number.toString(16).padStart(64, 'b')}`;
    return number > self.block ? null : { number: `0x${number.toString(16)}`, timestamp: '0x6b49d200', hash };
  }

  function called({ to, data }: { to: string; data: Hex }, at: number): Hex {
    if (at > self.block) throw new RpcError(-32001, `request beyond head block: requested ${at}, head ${self.block}`);
    if (to !== SETTLEMENT) return readAll(data, at);
    const asked = decodeFunctionData({ abi, data });
    if (asked.functionName === 'getChannelId') return bytesToHex(scheme.channelId(configOf(asked.args?.[0] as never)));
    const saved = new Map(held);
    try {
      execute(data);
      return '0x';
    } catch (error) {
      throw new RpcError(3, `execution reverted: ${(error as Error).message}`);
    } finally {
      for (const [id, before] of saved) held.set(id, before);
    }
  }

  /** Answers reads through Multicall3. */
  function readAll(data: Hex, at: number): Hex {
    const { args } = decodeFunctionData({ abi: multicall, data });
    const [calls] = args as unknown as [{ target: string; callData: Hex }[]];
    const result = calls.map(({ target, callData }) => ({
      success: true,
      returnData: target.toLowerCase() === SETTLEMENT ? view(callData) : `0x${at.toString(16).padStart(64, '0')}`,
    }));
    return encodeFunctionResult({ abi: multicall, functionName: 'aggregate3', result: result as never });
  }

  function view(data: Hex): Hex {
    const { functionName, args } = decodeFunctionData({ abi, data });
    const one = self.of(hexToBytes((args as [Hex])[0]));
    const results: Record<string, unknown> = {
      channels: [one.balance, one.totalClaimed],
      pendingWithdrawals: [one.withdrawAmount, one.withdrawAt],
      refundNonce: one.refundNonce,
    };
    return encodeFunctionResult({ abi, functionName, result: results[functionName] });
  }
}

export type ContractStandIn = ReturnType<typeof createContractStandIn>;

interface Made {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
}

interface Filter {
  readonly address: string;
  readonly topics: readonly (string | readonly string[])[];
  readonly fromBlock: string;
  readonly toBlock: string;
}

function isAskedFor({ address, topics, block }: Log, filter: Filter): boolean {
  const isIn = Number(filter.fromBlock) <= block && block <= Number(filter.toBlock);
  const fits = filter.topics.every((wanted, at) => [wanted].flat().includes(topics[at] ?? ''));
  return isIn && address === filter.address && fits;
}

/** A log as the contract writes it: indexed values, then the others. */
function eventOf(eventName: string, indexed: readonly unknown[], values: readonly unknown[]): Made {
  const event = abi.find((item) => item.type === 'event' && item.name === eventName) as {
    inputs: readonly { readonly type: string; readonly indexed?: boolean }[];
  };
  const topics = encodeEventTopics({ abi, eventName, args: indexed } as never) as string[];
  const types = event.inputs.filter((input) => !input.indexed);
  return { address: SETTLEMENT, topics, data: encodeAbiParameters(types, values) };
}

function configOf(struct: Record<string, string | number>): ChannelConfig {
  const entries = Object.entries(struct).map(([name, value]) => [
    name,
    typeof value === 'string' ? hexToBytes(value) : value,
  ]);
  return Object.fromEntries(entries);
}
