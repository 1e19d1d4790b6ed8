import { decodeText, SELECTORS } from './abi.ts';
import { knownContract } from './known-contracts.ts';
import type { RpcCall } from './rpc/call.ts';
import type { ChainClient, RpcOptions, RpcOutcome } from './rpc/client.ts';

/** A contract and its code, both in lower case. */
export interface ContractCode {
  readonly address: `0x${string}`;
  readonly code: `0x${string}`;
}

/** EIP-1967: keccak-256 of "eip1967.proxy.implementation" less one (https://eips.ethereum.org/EIPS/eip-1967). */
const IMPLEMENTATION_SLOT = '0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc';
/** EIP-1167: the whole code of a minimal proxy, around the address that it stands for. */
const MINIMAL_PROXY = /^0x363d3d373d3d3d363d73([0-9a-f]{40})5af43d82803e903d91602b57fd5bf3$/;
/** Gas limit of each call, 1,000,000. Reading a symbol takes some ten thousand gas, through a proxy too; a call that needs more would only load the node. */
const CALL_GAS = '0xf4240';

/**
 * What each contract seems to be, as text; null when none of these applies:
 * 1. a known contract's name; 2. the target of a proxy (EIP-1167's code, EIP-1967's slot);
 * 3. the symbol that the contract reports, which proves nothing.
 * A contract that refuses a call gets no label of that kind. Rejects when no provider answers.
 */
export async function labelContracts(
  chain: ChainClient,
  contracts: readonly ContractCode[],
  options: RpcOptions,
): Promise<(string | null)[]> {
  const alive = contracts.filter(({ code }) => code !== '0x');
  const outcomes = await chain.batch(
    alive.flatMap(({ address }) => [slotCall(address), symbolCall(address)]),
    options,
  );
  const labels = new Map(
    alive.map((contract, at) => [
      contract.address,
      label(chain.chainId, contract, outcomes[2 * at], outcomes[2 * at + 1]),
    ]),
  );
  return contracts.map(({ address }) => labels.get(address) ?? knownContract(chain.chainId, address));
}

function slotCall(address: string): RpcCall {
  return { method: 'eth_getStorageAt', params: [address, IMPLEMENTATION_SLOT, 'latest'] };
}

function symbolCall(address: string): RpcCall {
  return { method: 'eth_call', params: [{ to: address, data: SELECTORS['symbol()'], gas: CALL_GAS }, 'latest'] };
}

function label(
  chainId: number,
  { address, code }: ContractCode,
  slot: RpcOutcome | undefined,
  symbol: RpcOutcome | undefined,
): string | null {
  const named = (target: string) => {
    const known = knownContract(chainId, target);
    return known === null ? target : `${target} (${known})`;
  };
  const minimal = MINIMAL_PROXY.exec(code)?.[1];
  const target = addressIn(textOf(slot));
  const ticker = decodeText(textOf(symbol));
  const parts = [
    knownContract(chainId, address),
    minimal === undefined ? null : `minimal proxy to ${named(`0x${minimal}`)}`,
    target === null ? null : `proxy to ${named(target)}`,
    ticker === null ? null : `token "${ticker}"`,
  ].filter((part) => part !== null);
  return parts.length === 0 ? null : parts.join(', ');
}

/** The bytes that a node answered; "0x" when it gave none. */
function textOf(outcome: RpcOutcome | undefined): string {
  const result = outcome !== undefined && 'result' in outcome ? outcome.result : null;
  return typeof result === 'string' && /^0x(?:[0-9a-fA-F]{2})*$/.test(result) ? result : '0x';
}

/** The address in a storage word; null when the word is empty or holds something else. */
function addressIn(word: string): `0x${string}` | null {
  const match = /^0x0{24}([0-9a-fA-F]{40})$/.exec(word);
  return match?.[1] === undefined || /^0+$/.test(match[1]) ? null : `0x${match[1].toLowerCase()}`;
}
