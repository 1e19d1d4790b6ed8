import { encodeEventTopics, type Hex, type Log, parseEventLogs } from 'viem';
import { artifacts, BATCH_SETTLEMENT } from '../../../dev/contracts.ts';
import type { EmbeddedNetwork } from '../../../dev/network.ts';

const { abi } = artifacts.BatchSettlement;

/** What a mined transaction used. */
export interface MinedGas {
  readonly gas: bigint;
  /** Its cost in native USDC, 18 decimals. */
  readonly wei: bigint;
}

/** The gas of a successful transaction. Throws when it is not mined or has reverted. */
export async function minedGas({ rpc }: Pick<EmbeddedNetwork, 'rpc'>, hash: Hex): Promise<MinedGas> {
  type Mined = { status: Hex; gasUsed: Hex; effectiveGasPrice: Hex };
  const receipt = await rpc<Mined | null>('eth_getTransactionReceipt', [hash]);
  if (receipt?.status !== '0x1') throw new Error(`the chain holds no successful transaction ${hash}`);
  const gas = BigInt(receipt.gasUsed);
  return { gas, wei: gas * BigInt(receipt.effectiveGasPrice) };
}

/** The claims from a channel that the chain shows, oldest first. Amounts in USDC base units. */
export async function claimsOf(
  { rpc }: Pick<EmbeddedNetwork, 'rpc'>,
  channelId: Hex,
): Promise<{ readonly amount: bigint; readonly transaction: Hex }[]> {
  const topics = encodeEventTopics({ abi, eventName: 'Claimed', args: { channelId } });
  const filter = { address: BATCH_SETTLEMENT, topics, fromBlock: '0x0', toBlock: 'latest' };
  const logs = await rpc<Log[]>('eth_getLogs', [filter]);
  return parseEventLogs({ abi, logs, eventName: 'Claimed' }).map((log) => {
    const { claimAmount } = (log as unknown as { args: { claimAmount: bigint } }).args;
    return { amount: claimAmount, transaction: log.transactionHash };
  });
}
