import { decodeText, SELECTORS } from './abi.ts';
import { knownContract } from './known-contracts.ts';
import { addressIn, bytesOf, minimalTarget, PROXY_SLOTS } from './proxy-target.ts';
import type { RpcCall, RpcOptions } from './rpc/call.ts';
import type { ChainClient } from './rpc/client.ts';
import type { RpcOutcome } from './rpc/wire.ts';
import { viewCall } from './view-call.ts';

/** A contract and its code, both in lower case. The code is null when it was read before and is no minimal proxy's. */
export interface ContractCode {
  readonly address: `0x${string}`;
  readonly code: `0x${string}` | null;
}

/** What a contract seems to be. */
export interface ContractLabel {
  /** Null when nothing is known. */
  readonly text: string | null;
  /** It reports a symbol. */
  readonly isToken: boolean;
  readonly isProxy: boolean;
}

/**
 * What each contract seems to be, as text (null when none of these applies) and by kind:
 * 1. a known contract's name; 2. the target of a proxy (EIP-1167's code, EIP-1967's slot);
 * 3. the symbol that the contract reports, which proves nothing.
 * A contract that refuses a call gets no label of that kind. Rejects when no provider answers.
 */
export async function labelContracts(
  chain: ChainClient,
  contracts: readonly ContractCode[],
  options: RpcOptions,
): Promise<ContractLabel[]> {
  const alive = contracts.filter(({ code }) => code !== '0x');
  const outcomes = await chain.batch(
    alive.flatMap(({ address }) => [slotCall(address), viewCall(address, SELECTORS['symbol()'], 'latest')]),
    options,
  );
  const labels = new Map(
    alive.map((contract, at) => [
      contract.address,
      label(chain.chainId, contract, outcomes[2 * at], outcomes[2 * at + 1]),
    ]),
  );
  const dead = (address: string) => ({ text: knownContract(chain.chainId, address), isToken: false, isProxy: false });
  return contracts.map(({ address }) => labels.get(address) ?? dead(address));
}

function slotCall(address: string): RpcCall {
  return { method: 'eth_getStorageAt', params: [address, PROXY_SLOTS['eip1967.proxy.implementation'], 'latest'] };
}

function label(
  chainId: number,
  { address, code }: ContractCode,
  slot: RpcOutcome | undefined,
  symbol: RpcOutcome | undefined,
): ContractLabel {
  const named = (target: string) => {
    const known = knownContract(chainId, target);
    return known === null ? target : `${target} (${known})`;
  };
  const minimal = code === null ? null : minimalTarget(code);
  const target = addressIn(bytesOf(slot));
  const ticker = decodeText(bytesOf(symbol));
  const parts = [
    knownContract(chainId, address),
    minimal === null ? null : `minimal proxy to ${named(minimal)}`,
    target === null ? null : `proxy to ${named(target)}`,
    ticker === null ? null : `token "${ticker}"`,
  ].filter((part) => part !== null);
  return {
    text: parts.length === 0 ? null : parts.join(', '),
    isToken: ticker !== null,
    isProxy: minimal !== null || target !== null,
  };
}
