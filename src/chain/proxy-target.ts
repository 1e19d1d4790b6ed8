import type { RpcCall, RpcOptions } from './rpc/call.ts';
import type { ChainClient } from './rpc/client.ts';
import { data, type RpcOutcome, toQuantity } from './rpc/wire.ts';
import { viewCall } from './view-call.ts';

type Hex = `0x${string}`;

/** The rule by which an account runs the code of another one. */
export type ProxyStandard = 'EIP-7702' | 'EIP-1167' | 'EIP-1967' | 'EIP-1967 beacon' | 'ZeppelinOS';

/** Whose code an account runs. Addresses are in lower case. */
export interface Proxy {
  readonly standard: ProxyStandard;
  /** Null when the beacon names none. */
  readonly target: Hex | null;
  /** The contract that names the target to all its proxies; null without one. */
  readonly beacon: Hex | null;
}

/** An account's code, and its proxy: null when it is none by a standard that we know, undefined when the node gave no code or no storage. */
export interface AccountCode {
  /** Null when the node gave none, which is not the same as an account without code (0x). */
  readonly code: Hex | null;
  readonly proxy: Proxy | null | undefined;
}

/** Storage slots (checked by a test). EIP-1967: keccak-256 of its name less one. ZeppelinOS: keccak-256 of its name; Circle's token proxies use it. */
export const PROXY_SLOTS = {
  'eip1967.proxy.implementation': '0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc',
  'eip1967.proxy.beacon': '0xa3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6cb3582b35133d50',
  'org.zeppelinos.proxy.implementation': '0x7050c9e0f4ca769c69bd3a8ef740bc37934f8e2c036e5a723fd8ee048ed3f8c3',
} as const;
/** A beacon's `implementation()` (checked by a test). */
export const BEACON_SELECTOR = '0x5c60da1b';

/** EIP-1167: the whole code of a minimal proxy, around the address that it stands for. */
const MINIMAL_PROXY = /^0x363d3d373d3d3d363d73([0-9a-f]{40})5af43d82803e903d91602b57fd5bf3$/;
/** EIP-7702: the whole code of a wallet that delegates, before the address whose code it runs. */
const DELEGATION = /^0xef0100([0-9a-f]{40})$/;

/** The calls whose outcomes `readAccountCode` takes, in order: the code and the slots. They belong into one batch with the caller's other reads. */
export function accountCodeCalls(address: string, block: number): RpcCall[] {
  const at = toQuantity(block);
  const slots = Object.values(PROXY_SLOTS);
  return [
    { method: 'eth_getCode', params: [address, at] },
    ...slots.map((slot) => ({ method: 'eth_getStorageAt', params: [address, slot, at] })),
  ];
}

/**
 * An account's code, and whose code it runs, by these rules; the first that applies counts:
 * 1. no code: no proxy; 2. EIP-7702's code; 3. EIP-1167's code; 4. EIP-1967's slot; 5. ZeppelinOS's slot; 6. EIP-1967's slot of a beacon, which one more
 * request asks for its target.
 * A contract may write anything into these slots, so the answer is what it claims.
 */
export async function readAccountCode(
  chain: ChainClient,
  outcomes: readonly RpcOutcome[],
  block: number,
  options: RpcOptions,
): Promise<AccountCode> {
  const [codeOutcome, ...slots] = outcomes;
  const code = codeOf(codeOutcome);
  if (code === null) return { code, proxy: undefined };
  const direct = (standard: ProxyStandard, target: Hex) => ({ code, proxy: { standard, target, beacon: null } });
  if (code === '0x') return { code, proxy: null };
  const delegate = delegateOf(code);
  if (delegate !== null) return direct('EIP-7702', delegate);
  const minimal = minimalTarget(code);
  if (minimal !== null) return direct('EIP-1167', minimal);
  if (slots.some((outcome) => 'error' in outcome)) return { code, proxy: undefined };
  const [implementation = null, beacon = null, zeppelin = null] = slots.map((outcome) => addressIn(bytesOf(outcome)));
  if (implementation !== null) return direct('EIP-1967', implementation);
  if (zeppelin !== null) return direct('ZeppelinOS', zeppelin);
  if (beacon === null) return { code, proxy: null };
  const target = await askBeacon(chain, beacon, block, options);
  return { code, proxy: { standard: 'EIP-1967 beacon', target, beacon } };
}

/** The delegate of a wallet's code by EIP-7702, in lower case; null for any other code. Such an account stays a wallet. */
export function delegateOf(code: string): Hex | null {
  const match = DELEGATION.exec(code)?.[1];
  return match === undefined ? null : `0x${match}`;
}

/** The target of a minimal proxy's code; null for any other code. The code is in lower case. */
export function minimalTarget(code: string): Hex | null {
  const match = MINIMAL_PROXY.exec(code)?.[1];
  return match === undefined ? null : `0x${match}`;
}

/** The address in a storage word, in lower case; null when the word is empty or holds something else. */
export function addressIn(word: string): Hex | null {
  const match = /^0x0{24}([0-9a-fA-F]{40})$/.exec(word)?.[1];
  return match === undefined || /^0+$/.test(match) ? null : `0x${match.toLowerCase()}`;
}

/** The bytes that a node answered; "0x" when it gave none. */
export function bytesOf(outcome: RpcOutcome | undefined): string {
  const result = outcome !== undefined && 'result' in outcome ? outcome.result : null;
  return typeof result === 'string' && /^0x(?:[0-9a-fA-F]{2})*$/.test(result) ? result : '0x';
}

function codeOf(outcome: RpcOutcome | undefined): Hex | null {
  const answer = outcome !== undefined && 'result' in outcome ? data.safeParse(outcome.result).data : undefined;
  return answer === undefined ? null : (answer.toLowerCase() as Hex);
}

/** Null when the beacon gives no address, and when the node does not answer: the rest of the caller's answer does not depend on it. */
async function askBeacon(chain: ChainClient, beacon: Hex, block: number, options: RpcOptions): Promise<Hex | null> {
  const outcomes = await chain.batch([viewCall(beacon, BEACON_SELECTOR, block)], options).catch((error: unknown) => {
    if (options.signal?.aborted) throw error;
    return [];
  });
  return addressIn(bytesOf(outcomes[0]));
}
