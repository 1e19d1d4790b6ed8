import { type Abi, decodeFunctionResult, encodeFunctionData, type Hex, parseEventLogs } from 'viem';
import { artifacts } from '../../../dev/contracts.ts';
import type { EmbeddedNetwork } from '../../../dev/network.ts';
import { SETTLEMENT } from '../../../src/payment/channels/scheme.ts';
import { until } from '../service/workers.ts';

export const abi = artifacts.BatchSettlement.abi as Abi;

type Log = { topics: [Hex, ...Hex[]]; data: Hex };

/** A view of the settlement contract, at a block. */
async function view<T>(
  network: EmbeddedNetwork,
  functionName: string,
  args: readonly unknown[],
  block: string,
): Promise<T> {
  const call = { to: SETTLEMENT, data: encodeFunctionData({ abi, functionName, args }) };
  const data = await network.rpc<Hex>('eth_call', [call, block]);
  return decodeFunctionResult({ abi, functionName, data }) as T;
}

/**
 * Waits until the newest block has a successor, and returns that block. At a block without one, the node may answer from a state that already has some
 * transactions of the next: then two reads of one block disagree.
 */
export async function blockWithSuccessor(network: EmbeddedNetwork): Promise<string> {
  const newest = () => network.rpc<string>('eth_blockNumber', []);
  const block = await newest();
  await until(`block ${block} has a successor`, async () => (await newest()) !== block);
  return block;
}

/** What the contract holds and has recorded as claimed for a channel, in base units. */
export async function channelOnChain(network: EmbeddedNetwork, id: string, block = 'latest') {
  const [balance, claimed] = await view<[bigint, bigint]>(network, 'channels', [id], block);
  return { balance, claimed };
}

/** What the contract has recorded as claimed from a channel, in base units. */
export const claimedOf = async (network: EmbeddedNetwork, id: string): Promise<bigint> =>
  (await channelOnChain(network, id)).claimed;

/** When the pending withdrawal of a channel was asked for, in Unix seconds of the chain; 0 without one. */
export async function withdrawingSince(network: EmbeddedNetwork, id: string): Promise<number> {
  const [, initiatedAt] = await view<[bigint, number]>(network, 'pendingWithdrawals', [id], 'latest');
  return Number(initiatedAt);
}

/** What was claimed for the seller in all, and what of it was not paid out yet, in base units. */
export async function sellerOnChain(network: EmbeddedNetwork, block = 'latest') {
  const [claimed, settled] = await view<[bigint, bigint]>(network, 'receivers', [network.seller, network.usdc], block);
  return { claimed, unpaid: claimed - settled };
}

/** The amounts that the contract's events of one name show for a channel, in their order. Base units. */
export async function eventsOf(
  network: EmbeddedNetwork,
  name: 'Deposited' | 'Refunded',
  id: string,
): Promise<bigint[]> {
  const filter = { address: SETTLEMENT, topics: [null, id], fromBlock: '0x0', toBlock: 'latest' };
  const raw = await network.rpc<Log[]>('eth_getLogs', [filter]);
  const logs = parseEventLogs({ abi, logs: raw as never }) as unknown as {
    eventName: string;
    args: { amount: bigint };
  }[];
  return logs.filter(({ eventName }) => eventName === name).map(({ args }) => args.amount);
}
