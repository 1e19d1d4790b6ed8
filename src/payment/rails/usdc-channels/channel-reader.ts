import type { Hex } from 'viem';
import { decodeFunctionResult, encodeFunctionData, parseAbi, toFunctionSelector } from 'viem/utils';
import type { ChainClient } from '../../../chain/rpc/client.ts';
import type { Rank } from '../../../chain/rpc/rank.ts';
import { data, parseAnswer } from '../../../chain/rpc/wire.ts';
import type { ChannelState } from '../../../store/ports/channel-state.ts';
import { word } from '../../evm/abi-words.ts';
import { MULTICALL3 } from '../../settlers/relayer/multicall.ts';
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

interface ReadOptions {
  /** What the read is for; `settle` by default. */
  readonly rank?: Rank;
  readonly signal?: AbortSignal;
}

/** Reads channels from the settlement contract. */
export function createChannelReader(chain: Pick<ChainClient, 'request'>) {
  async function readSome(
    ids: readonly Uint8Array[],
    { rank = 'settle', signal }: ReadOptions,
  ): Promise<(ChannelState | null)[]> {
    const asked = ids.flatMap((id) => VIEWS.map((selector): Hex => `${selector}${word(id)}`));
    // One channel that cannot be read must not hide the others.
    const args = [[BLOCK, ...asked.map((callData) => ({ target: SETTLEMENT, allowFailure: true, callData }))]] as const;
    const call = { to: MULTICALL3, data: encodeFunctionData({ abi: multicall, functionName: 'aggregate3', args }) };
    const answer = await chain.request('eth_call', [call, 'latest'], { rank, ...(signal && { signal }) });
    const raw = parseAnswer(data, answer, 'state of payment channels') as `0x${string}`;
    const results = decodeFunctionResult({ abi: multicall, functionName: 'aggregate3', data: raw });
    return statesOf(results, ids.length);
  }

  return {
    /**
     * Returns the states of these channels in their order, at most MOST_AT_ONCE of them by one request and at one block. A channel without a deposit
     * has zeros. Null for a channel that cannot be read although the others can. Rejects when the chain cannot be read.
     */
    async read(ids: readonly Uint8Array[], options: ReadOptions = {}): Promise<(ChannelState | null)[]> {
      const states: (ChannelState | null)[] = [];
      for (let start = 0; start < ids.length; start += MOST_AT_ONCE)
        states.push(...(await readSome(ids.slice(start, start + MOST_AT_ONCE), options)));
      return states;
    },
  };
}

export type ChannelReader = ReturnType<typeof createChannelReader>;

interface Answer {
  readonly success: boolean;
  readonly returnData: `0x${string}`;
}

function statesOf([first, ...answers]: readonly Answer[], count: number): (ChannelState | null)[] {
  const raw = first?.returnData ?? '0x';
  const block = Number(decodeFunctionResult({ abi: multicall, functionName: 'getBlockNumber', data: raw }));
  return Array.from({ length: count }, (_, at) => {
    const own = answers.slice(VIEWS.length * at, VIEWS.length * (at + 1));
    return own.every(({ success }) => success) ? stateOf(own, block) : null;
  });
}

function stateOf(answers: readonly Answer[], block: number): ChannelState {
  const [channel = '0x', withdrawal = '0x', nonce = '0x'] = answers.map(({ returnData }) => returnData);
  const [balance, totalClaimed] = decodeFunctionResult({ abi: views, functionName: 'channels', data: channel });
  const [withdrawAmount, withdrawAt] = decodeFunctionResult({
    ...{ abi: views, functionName: 'pendingWithdrawals', data: withdrawal },
  });
  const refundNonce = decodeFunctionResult({ abi: views, functionName: 'refundNonce', data: nonce });
  return { balance, totalClaimed, withdrawAmount, withdrawAt, refundNonce, block };
}
