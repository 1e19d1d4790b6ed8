import { decodeFunctionResult, encodeFunctionData, parseAbi } from 'viem';
import type { ChainClient } from '../../../chain/rpc/client.ts';
import type { Rank } from '../../../chain/rpc/rank.ts';
import { data, parseAnswer } from '../../../chain/rpc/wire.ts';
import { bytesToHex } from '../../../lib/hex.ts';
import type { ChannelState } from '../../../store/ports/channel-state.ts';
import { SETTLEMENT } from './scheme.ts';

/** Multicall3. It has the same address on Arc as on other chains. */
const MULTICALL3 = '0xca11bde05977b3631167028862be2a173976ca11';

const abi = parseAbi([
  'struct Call3 { address target; bool allowFailure; bytes callData; }',
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3(Call3[] calldata calls) payable returns (Result[] memory returnData)',
  'function getBlockNumber() view returns (uint256)',
  'function channels(bytes32) view returns (uint128 balance, uint128 totalClaimed)',
  'function pendingWithdrawals(bytes32) view returns (uint128 amount, uint40 initiatedAt)',
  'function refundNonce(bytes32) view returns (uint256)',
]);

const VIEWS = ['channels', 'pendingWithdrawals', 'refundNonce'] as const;
const NUMBER_CALL = encodeFunctionData({ abi, functionName: 'getBlockNumber' });

/**
 * Reads channels and the block's number in one call, so that all belong to one block. The states have the order of the ids. A channel that does not
 * exist has the balance 0. Rejects when the chain cannot be read.
 */
export async function readChannels(
  chain: Pick<ChainClient, 'request'>,
  ids: readonly Uint8Array[],
  { rank, signal }: { readonly rank: Rank; readonly signal?: AbortSignal },
): Promise<ChannelState[]> {
  const views = ids.flatMap((id) =>
    VIEWS.map((functionName) => call(SETTLEMENT, encodeFunctionData({ abi, functionName, args: [bytesToHex(id)] }))),
  );
  const calls = [call(MULTICALL3, NUMBER_CALL), ...views];
  const request = { to: MULTICALL3, data: encodeFunctionData({ abi, functionName: 'aggregate3', args: [calls] }) };
  const raw = await chain.request('eth_call', [request, 'latest'], { rank, ...(signal && { signal }) });
  const answer = parseAnswer(data, raw, 'channels') as `0x${string}`;
  const results = decodeFunctionResult({ abi, functionName: 'aggregate3', data: answer });
  const [number, ...rest] = results.map(({ returnData }) => returnData);
  const block = Number(decodeFunctionResult({ abi, functionName: 'getBlockNumber', data: number ?? '0x' }));
  return ids.map((_, at) => stateOf(rest.slice(at * VIEWS.length, (at + 1) * VIEWS.length), block));
}

function call(target: `0x${string}`, callData: `0x${string}`) {
  return { target, allowFailure: false, callData };
}

function stateOf(
  [channel = '0x', withdrawal = '0x', nonce = '0x']: readonly `0x${string}`[],
  block: number,
): ChannelState {
  const [balance, totalClaimed] = decodeFunctionResult({ abi, functionName: 'channels', data: channel });
  const [withdrawAmount, withdrawAt] = decodeFunctionResult({
    abi,
    functionName: 'pendingWithdrawals',
    data: withdrawal,
  });
  const refundNonce = decodeFunctionResult({ abi, functionName: 'refundNonce', data: nonce });
  return { balance, totalClaimed, withdrawAmount, withdrawAt, refundNonce, block };
}
