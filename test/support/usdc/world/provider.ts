import { encodeFunctionResult, type Hex, parseAbi } from 'viem';
import type { ChainClient } from '../../../../src/chain/rpc/client.ts';
import { chainBusy } from '../../../../src/chain/rpc/failover.ts';
import { type RpcCall, RpcError, type RpcOutcome, toQuantity } from '../../../../src/chain/rpc/wire.ts';
import { UpstreamFailed } from '../../../../src/errors.ts';
import { AUTHORIZATION_USED, MULTICALL3 } from '../../../../src/payment/usdc/token.ts';
import { aloneAgreed } from '../../chain/alone-agreed.ts';
import type { WorldChain } from './chain.ts';
import { between, type Dice, pick } from './dice.ts';
import { type Scenario, START_MS } from './scenario.ts';
import type { VirtualTime } from './virtual-time.ts';

const abi = parseAbi([
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3(uint256) view returns (Result[] memory returnData)',
]);
const [BALANCE_OF, TRANSFER, STATE] = ['0x70a08231', '0xa9059cbb', '0xe94a0102'];
const REFUSALS = [
  'txpool is full',
  'insufficient funds for gas * price + value',
  'nonce too low',
  'oversized data',
  'replacement transaction underpriced',
];
const NONSENSE = [null, 42, '0x', '0xzz', {}, [], `0x${'f'.repeat(70)}`];
const wordOf = (value: bigint | number | boolean): string => `0x${BigInt(value).toString(16).padStart(64, '0')}`;

/** A transaction that the relayer sent to its provider. */
export interface Handed {
  readonly atMs: number;
  readonly way: 'send' | 'everywhere';
  readonly raw: string;
}

interface ProviderOptions {
  readonly chain: WorldChain;
  readonly scenario: Scenario;
  readonly dice: Dice;
  readonly time: VirtualTime;
}

/** A chain client over the world's chain, with a network's faults between them. */
export function createWorldProvider({ chain, scenario, dice, time: { clock, at } }: ProviderOptions) {
  const handed: Handed[] = [];
  // How often the same request was sent at the same time. Each has its own random numbers.
  let asked = new Map<string, number>();
  let askedMs = 0;

  const sinceMs = (): number => clock.nowMs() - START_MS;

  /** Whether a fault of this kind hits the current request. */
  function hits(kind: string, about: string): boolean {
    const now = sinceMs();
    return scenario.faults.some(
      (fault, index) =>
        fault.kind === kind && fault.fromMs <= now && now < fault.toMs && dice(kind, index, about) < fault.share,
    );
  }

  function callContract(call: { to?: string; data: string }, block: number): unknown {
    if (!call.to) throw new RpcError(-32000, 'no call without a recipient');
    if (call.to === MULTICALL3) {
      const within = chain.intentsIn(call.data);
      let isGasExhausted = false;
      const result = within.map((intent) => {
        const success = !isGasExhausted && chain.goesThrough(intent, true);
        isGasExhausted ||= chain.hasCode(`0x${Buffer.from(intent.authorization.from).toString('hex')}`) && !success;
        return { success, returnData: '0x' as const };
      });
      return encodeFunctionResult({ abi, functionName: 'aggregate3', result });
    }
    if (call.data.startsWith(BALANCE_OF)) return wordOf(chain.balanceOf(`0x${call.data.slice(-40)}`));
    if (call.data.startsWith(STATE)) return wordOf(chain.isUsedAt(`0x${call.data.slice(-64)}`, block));
    if (call.data.startsWith(TRANSFER) && !chain.isDuring('token')) return wordOf(1);
    const [intent] = chain.intentsIn(call.data);
    if (!intent || !chain.goesThrough(intent, true)) throw new RpcError(3, 'execution reverted');
    return '0x';
  }

  function blockOf(tag: unknown, head: number): number {
    const block = tag === 'latest' || tag === undefined ? head : Number(tag);
    if (block > head) throw new RpcError(-32000, 'header not found');
    return block;
  }

  function answer({ method, params }: RpcCall, about: string): unknown {
    const head = chain.head() - (hits('lags', about) ? between(dice('lag', about), 1, 6) : 0);
    switch (method) {
      case 'eth_blockNumber':
        return toQuantity(head);
      case 'eth_gasPrice':
        return toQuantity(chain.baseFee());
      case 'eth_getTransactionCount':
        return toQuantity(chain.countAt(head));
      case 'eth_getCode':
        return chain.hasCode(String(params[0])) ? '0x60' : '0x';
      case 'eth_getBlockByNumber': {
        const block = blockOf(params[0], head);
        const gas = { baseFeePerGas: toQuantity(chain.baseFee()), gasLimit: '0x1c9c380' };
        return { ...gas, number: toQuantity(block), timestamp: toQuantity(chain.timeOf(block)) };
      }
      case 'eth_call':
        return callContract(params[0] as { to?: string; data: string }, blockOf(params[1], head));
      case 'eth_getLogs': {
        const [{ topics, toBlock }] = params as [{ topics: [string[], string, string]; toBlock: string }];
        const end = chain.isUsedAt(topics[2], Number(toBlock)) ? chain.endOf(topics[2]) : null;
        return end && topics[0].includes(end.topics[0] ?? AUTHORIZATION_USED) ? [end] : [];
      }
      case 'eth_getTransactionReceipt': {
        const receipt = chain.receiptOf(String(params[0]));
        return receipt && Number(receipt.blockNumber) <= head ? receipt : null;
      }
      case 'eth_sendRawTransaction': {
        if (hits('refuses', about)) throw new RpcError(-32000, pick(dice('refusal', about), REFUSALS));
        return chain.take(params[0] as Hex, !hits('keeps', about));
      }
      default:
        throw new Error(`the world’s provider does not know ${method}`);
    }
  }

  function outcomeOf(call: RpcCall, about: string): RpcOutcome {
    try {
      const result = answer(call, about);
      return { result: hits('nonsense', `${about} answer`) ? pick(dice('nonsense', about), NONSENSE) : result };
    } catch (error) {
      if (error instanceof RpcError) return { error };
      throw error;
    }
  }

  /** One HTTP request. Half of its time passes before the answer is made, half after. */
  function exchange(calls: readonly RpcCall[], signal?: AbortSignal): Promise<RpcOutcome[]> {
    const now = clock.nowMs();
    if (now !== askedMs) [asked, askedMs] = [new Map(), now];
    // The order of the calls within a request does not matter.
    const texts = calls.map((call) => JSON.stringify(call));
    const content = [...texts].sort().join();
    const times = (asked.get(content) ?? 0) + 1;
    asked.set(content, times);
    const about = String(dice(content, now, times));
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
      const down = (): void => reject(new UpstreamFailed('chain', 'no provider answers'));
      const slow = hits('slow', about) ? 1500 * dice('slow ms', about) : 0;
      const there = 1 + 25 * dice('there', about) + slow / 2;
      if (hits('busy', about)) return at(now + there, () => reject(chainBusy()));
      if (hits('down', about)) return at(now + there, down);
      at(now + there, () => {
        const outcomes = calls.map((call, index) => outcomeOf(call, `${about}/${texts[index]}`));
        if (hits('hangs', about)) return at(now + there + 2000, down);
        at(now + 2 * there, () => resolve(outcomes));
      });
    });
  }

  function hand(way: Handed['way'], calls: readonly RpcCall[]): void {
    for (const { method, params } of calls)
      if (method === 'eth_sendRawTransaction') handed.push({ atMs: sinceMs(), way, raw: String(params[0]) });
  }

  const client: ChainClient = {
    chainId: 5042,
    publicUrl: 'http://world',
    ready: async () => {},
    requestsPerSecond: () => Number.POSITIVE_INFINITY,
    agreed: aloneAgreed(
      async (options) =>
        (await client.request<{ number: string }>('eth_getBlockByNumber', ['latest', false], options)).number,
    ),
    batch: async (calls, options) => {
      hand('send', calls);
      return calls.length === 0 ? [] : exchange(calls, options?.signal);
    },
    request: async <T>(method: string, params: readonly unknown[], options: { signal?: AbortSignal } = {}) => {
      const [outcome] = await exchange([{ method, params }], options.signal);
      if (!outcome || 'error' in outcome) throw outcome?.error ?? new UpstreamFailed('chain', 'no answer');
      return outcome.result as T;
    },
    each: async (calls, options) => [await client.batch(calls, options)],
    everywhere: async (calls) => {
      hand('everywhere', calls);
      for (const call of calls) at(clock.nowMs() + 20, () => void outcomeOf(call, `everywhere ${clock.nowMs()}`));
    },
  };
  return { client, handed };
}
