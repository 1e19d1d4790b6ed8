import type { Hex } from 'viem';
import { decodeFunctionResult, encodeFunctionData, parseAbi, toFunctionSelector } from 'viem/utils';
import { readAtBlock } from '../../../chain/named-block.ts';
import type { RpcCall, RpcOptions } from '../../../chain/rpc/call.ts';
import type { ChainClient } from '../../../chain/rpc/client.ts';
import type { Rank } from '../../../chain/rpc/rank.ts';
import { data, parseAnswer, type RpcOutcome, resultOf, toQuantity } from '../../../chain/rpc/wire.ts';
import { Unconfirmed } from '../../../chain/rpc/witnesses.ts';
import { Unavailable, UpstreamFailed } from '../../../errors.ts';
import type { ChannelState } from '../../../store/ports/channel-state.ts';
import { MULTICALL3 } from '../../relayer/transactions.ts';
import { hexWord } from '../../usdc/token.ts';
import { SETTLEMENT } from './scheme.ts';

const views = parseAbi([
  'function channels(bytes32 id) view returns (uint128 balance, uint128 totalClaimed)',
  'function pendingWithdrawals(bytes32 id) view returns (uint128 amount, uint40 initiatedAt)',
  'function refundNonce(bytes32 id) view returns (uint256)',
]);
const multicall = parseAbi([
  'struct Call3 { address target; bool allowFailure; bytes callData; }',
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3(Call3[] calls) payable returns (Result[] returnData)',
  'function getBlockNumber() view returns (uint256)',
]);
/** Selectors of the views. A library's encoder hashes each function's name again at every call. */
const VIEWS = ['channels', 'pendingWithdrawals', 'refundNonce'].map((name) => toFunctionSelector(`${name}(bytes32)`));
const BLOCK = {
  allowFailure: false,
  target: MULTICALL3 as Hex,
  callData: encodeFunctionData({ abi: multicall, functionName: 'getBlockNumber' }),
};
/** Channels of one request. Each costs about 12,000 gas to read, and nodes give a read 50 million. */
const MOST_AT_ONCE = 500;

/** How often a read is made, each time at a new head. A node that makes a block meanwhile may answer from that one. */
const MOST_TRIES = 3;

/** A provider answered from another block than the one that was named. */
class OtherBlock extends UpstreamFailed {
  constructor() {
    super('chain', `${STATE} at another block`);
  }
}

interface ReadOptions {
  /** What the read is for; `settle` by default. */
  readonly rank?: Rank;
  readonly signal?: AbortSignal;
  /** The block to read at; the agreed head by default. */
  readonly atBlock?: number;
  /** How many places after the best provider the first one stands that is asked; 0 by default. */
  readonly turn?: number;
}

/**
 * The states of channels in the order in which they were asked for. Null for a channel that cannot be read although the
 * others can.
 */
export type ChannelStates = readonly (ChannelState | null)[];

/**
 * Reads channels from the settlement contract, at a block that we name. Every state is one of that block: a provider
 * that answers from another one is not believed.
 */
export function createChannelReader(chain: Pick<ChainClient, 'batch' | 'each' | 'agreed'>) {
  async function readSome(ids: readonly Uint8Array[], block: number, rpc: RpcOptions) {
    const callsAt = (tag: string): RpcCall[] => [callOf(ids, tag)];
    const read = await readAtBlock(chain, block, callsAt, { ...rpc, isConfirmed: true });
    if (!read && chain.agreed.witnesses < 2) throw new UpstreamFailed('chain', `the provider lacks block ${block}`);
    if (!read) throw new Unavailable('settlement_unavailable', `no two RPC providers have block ${block}`, 1);
    return statesOf(read.outcomes[0], ids.length, block);
  }

  async function readAll(ids: readonly Uint8Array[], block: number, rpc: RpcOptions) {
    const states: (ChannelState | null)[] = [];
    for (let start = 0; start < ids.length; start += MOST_AT_ONCE)
      states.push(...(await readSome(ids.slice(start, start + MOST_AT_ONCE), block, rpc)));
    return states;
  }

  return {
    /**
     * Returns the states of these channels, at most MOST_AT_ONCE of them by one request and all at one block. Where two
     * or more providers are configured, two of them gave each state. A channel without a deposit has zeros. Rejects
     * when the chain cannot be read, and with Unavailable (`settlement_unavailable`) where no two providers say the
     * same.
     */
    async read(
      ids: readonly Uint8Array[],
      { rank = 'settle', signal, atBlock, turn = 0 }: ReadOptions = {},
    ): Promise<ChannelStates> {
      if (ids.length === 0) return [];
      const rpc = { rank, turn, ...(signal && { signal }) };
      for (let tries = 1; ; tries++) {
        const block = atBlock ?? (await chain.agreed.head(rpc));
        try {
          return await readAll(ids, block, rpc);
        } catch (error) {
          if (!(error instanceof OtherBlock) || atBlock !== undefined || tries === MOST_TRIES) throw error;
        }
      }
    },
    /**
     * Returns what each provider says of at most MOST_AT_ONCE channels at this block. One that does not answer, or
     * answers from another block, is left out. Nothing here is confirmed: it may warn, and decides nothing. Rejects
     * when nobody answers.
     */
    async readEach(ids: readonly Uint8Array[], atBlock: number, rank: Rank): Promise<readonly ChannelStates[]> {
      const answers = await chain.each([callOf(ids, toQuantity(atBlock))], { rank });
      return answers.flatMap(([outcome]) => {
        try {
          return [statesOf(outcome, ids.length, atBlock)];
        } catch {
          return [];
        }
      });
    },
  };
}

export type ChannelReader = ReturnType<typeof createChannelReader>;

function callOf(ids: readonly Uint8Array[], tag: string): RpcCall {
  const asked = ids.flatMap((id) => VIEWS.map((selector): Hex => `${selector}${hexWord(id)}`));
  // One channel that cannot be read must not hide the others.
  const args = [[BLOCK, ...asked.map((callData) => ({ target: SETTLEMENT, allowFailure: true, callData }))]] as const;
  const call = { to: MULTICALL3, data: encodeFunctionData({ abi: multicall, functionName: 'aggregate3', args }) };
  return { method: 'eth_call', params: [call, tag] };
}

interface Answer {
  readonly success: boolean;
  readonly returnData: `0x${string}`;
}

/** Throws for an answer that is not confirmed, that cannot be read, and that is not from the named block. */
function statesOf(outcome: RpcOutcome | undefined, count: number, block: number): (ChannelState | null)[] {
  if (outcome && 'error' in outcome && outcome.error instanceof Unconfirmed)
    throw new Unavailable('settlement_unavailable', 'no two RPC providers say the same of payment channels');
  const raw = parseAnswer(data, resultOf(outcome, STATE), STATE) as `0x${string}`;
  const [first, ...answers] = decode(raw);
  if (decodeBlock(first) !== BigInt(block)) throw new OtherBlock();
  return Array.from({ length: count }, (_, at) => {
    const own = answers.slice(VIEWS.length * at, VIEWS.length * (at + 1));
    return own.length === VIEWS.length && own.every(({ success }) => success) ? stateOf(own, block) : null;
  });
}

const STATE = 'state of payment channels';

function decode(raw: `0x${string}`): readonly Answer[] {
  try {
    return decodeFunctionResult({ abi: multicall, functionName: 'aggregate3', data: raw });
  } catch (error) {
    throw new UpstreamFailed('chain', `malformed ${STATE}`, error);
  }
}

const decodeBlock = (answer: Answer | undefined): bigint =>
  decodeFunctionResult({ abi: multicall, functionName: 'getBlockNumber', data: answer?.returnData ?? '0x' });

function stateOf(answers: readonly Answer[], block: number): ChannelState {
  const [channel = '0x', withdrawal = '0x', nonce = '0x'] = answers.map(({ returnData }) => returnData);
  const [balance, totalClaimed] = decodeFunctionResult({ abi: views, functionName: 'channels', data: channel });
  const [withdrawAmount, withdrawAt] = decodeFunctionResult({
    abi: views,
    functionName: 'pendingWithdrawals',
    data: withdrawal,
  });
  const refundNonce = decodeFunctionResult({ abi: views, functionName: 'refundNonce', data: nonce });
  return { balance, totalClaimed, withdrawAmount, withdrawAt, refundNonce, block };
}
