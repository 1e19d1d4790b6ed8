import { decodeFunctionResult, encodeFunctionData, type Hex, type Log, parseEventLogs } from 'viem';
import { artifacts } from './contracts/artifacts.ts';
import type { EmbeddedNetwork } from './network.ts';

const { abi } = artifacts.Usdc;

/** The balance of the USDC contract, in base units, at the end of a block. */
export async function balanceOf(
  { rpc, usdc }: Pick<EmbeddedNetwork, 'rpc' | 'usdc'>,
  address: Hex,
  block: Hex | 'latest' = 'latest',
): Promise<bigint> {
  const data = encodeFunctionData({ abi, functionName: 'balanceOf', args: [address] });
  const answer = await rpc<Hex>('eth_call', [{ to: usdc, data }, block]);
  return BigInt(decodeFunctionResult({ abi, functionName: 'balanceOf', data: answer }) as bigint);
}

/** A transfer from the token's own log; addresses in lower case. */
export interface UsdcTransfer {
  readonly from: string;
  readonly to: string;
  readonly value: bigint;
}

/** The token's own transfers in a successful transaction. The system log of each has another emitter and does not count. */
export async function transfersIn(
  { rpc, usdc }: Pick<EmbeddedNetwork, 'rpc' | 'usdc'>,
  hash: Hex,
): Promise<UsdcTransfer[]> {
  const receipt = await rpc<{ status: Hex; logs: Log[] } | null>('eth_getTransactionReceipt', [hash]);
  if (receipt === null) throw new Error(`the chain holds no transaction ${hash}`);
  if (receipt.status !== '0x1') throw new Error(`the transaction ${hash} reverted`);
  const own = receipt.logs.filter((log) => log.address.toLowerCase() === usdc);
  return parseEventLogs({ abi, logs: own, eventName: 'Transfer' }).map((log) => {
    const { from, to, value } = (log as unknown as { args: { from: Hex; to: Hex; value: bigint } }).args;
    return { from: from.toLowerCase(), to: to.toLowerCase(), value };
  });
}
