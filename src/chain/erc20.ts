import { UpstreamFailed } from '../errors.ts';
import { decodeText, decodeUint, SELECTORS, TRANSFER_TOPIC, viewCall } from './contracts.ts';
import { type ChainClient, createChainCache } from './rpc/client.ts';
import { data, parseAnswer, type RpcCall, type RpcError, type RpcOptions, type RpcOutcome } from './rpc/wire.ts';
import type { Log } from './transaction.ts';

// Tokens: what their contracts report, and what a transaction moved.

/** Null is what the contract does not answer. */
export interface Token {
  readonly address: `0x${string}`;
  readonly name: string | null;
  readonly symbol: string | null;
  readonly decimals: number | null;
}

/** `isErc721` by ERC-165: an ERC-721 answers nearly the same calls. */
interface TokenWithSupply extends Token {
  /** In base units. */
  readonly totalSupply: bigint | null;
  readonly isErc721: boolean;
}

const METADATA = [SELECTORS['name()'], SELECTORS['symbol()'], SELECTORS['decimals()']] as const;

/** An hour of half-second blocks, because a proxy may rename its token. 2,000 take some megabytes at most. */
const cacheOf = createChainCache<Token>(7200, 2000);

/** One batch, cached when complete. Null where the contract answers nothing. */
export async function readTokens(
  chain: ChainClient,
  addresses: readonly `0x${string}`[],
  block: number,
  options: RpcOptions,
): Promise<(Token | null)[]> {
  const cache = cacheOf(chain);
  const known = new Map<string, Token | null>();
  for (const address of addresses) {
    const token = cache.get(address, block);
    if (token !== undefined) known.set(address, token);
  }
  const missing = [...new Set(addresses)].filter((address) => !known.has(address));
  const calls = missing.flatMap((address) => METADATA.map((selector) => viewCall(address, selector, block)));
  const outcomes = await chain.batch(calls, options);
  missing.forEach((address, at) => {
    const token = toToken(address, outcomes.slice(at * METADATA.length, (at + 1) * METADATA.length));
    known.set(address, token);
    if (token?.symbol != null && token.decimals !== null) cache.set(address, block, token);
  });
  return addresses.map((address) => known.get(address) ?? null);
}

function toToken(address: `0x${string}`, outcomes: readonly RpcOutcome[]): Token | null {
  const [name = '0x', symbol = '0x', decimals = '0x'] = outcomes.slice(0, METADATA.length).map(readView);
  const places = decodeUint(decimals);
  const token = {
    address,
    name: decodeText(name),
    symbol: decodeText(symbol),
    // uint8 by ERC-20.
    decimals: places !== null && places <= 255n ? Number(places) : null,
  };
  return token.name === null && token.symbol === null && token.decimals === null ? null : token;
}

/** ERC-165's id of ERC-721 (https://eips.ethereum.org/EIPS/eip-721), as an argument. */
const ERC721_INTERFACE = '80ac58cd'.padEnd(64, '0');

/** For `readTokenWithSupply`, inside a larger batch. */
export function tokenCalls(address: `0x${string}`, block: number): RpcCall[] {
  return [
    ...METADATA.map((selector) => viewCall(address, selector, block)),
    viewCall(address, SELECTORS['totalSupply()'], block),
    viewCall(address, `${SELECTORS['supportsInterface(bytes4)']}${ERC721_INTERFACE}`, block),
  ];
}

export function readTokenWithSupply(address: `0x${string}`, outcomes: readonly RpcOutcome[]): TokenWithSupply | null {
  const token = toToken(address, outcomes);
  if (token === null) return null;
  const [supply, erc721] = outcomes.slice(METADATA.length).map(readView);
  return { ...token, totalSupply: decodeUint(supply ?? '0x'), isErc721: decodeUint(erc721 ?? '0x') === 1n };
}

export function balanceCall(token: string, owner: string, block: number): RpcCall {
  return viewCall(token, `${SELECTORS['balanceOf(address)']}${owner.slice(2).padStart(64, '0')}`, block);
}

export function readBalance(outcome: RpcOutcome | undefined): bigint | null {
  return decodeUint(readView(outcome));
}

/** "0x" when the contract failed. Throws UpstreamFailed when the node did. */
function readView(outcome: RpcOutcome | undefined): string {
  if (outcome === undefined) throw new UpstreamFailed('chain', 'no answer to a contract call');
  if (!('error' in outcome)) return parseAnswer(data, outcome.result, 'contract answer');
  if (isContractFailure(outcome.error)) return '0x';
  throw new UpstreamFailed('chain', 'a contract call was refused', outcome.error);
}

/** A revert (code 3: geth and reth) or a halt (-32003, -32015: some nodes). */
function isContractFailure({ code, message }: RpcError): boolean {
  const halted = /revert|opcode|out of gas|outofgas|invalid jump|stack (under|over)flow|evm error|execution/i;
  return code === 3 || code === -32003 || code === -32015 || halted.test(message);
}

/** Arc's emitter of a log for every movement of native USDC (EIP-7708), with 18 decimals. */
export const ARC_SYSTEM_ADDRESS = '0xfffffffffffffffffffffffffffffffffffffffe';
/** USDC has 6 decimals as an ERC-20, and 18 as the native currency. */
export const NATIVE_PER_UNIT = 10n ** 12n;

/** `token` is the log's emitter, `amount` in base units. */
export interface Transfer {
  readonly token: `0x${string}`;
  readonly from: `0x${string}`;
  readonly to: `0x${string}`;
  readonly amount: bigint;
  readonly logIndex: number;
}

/** Each movement once. One of USDC on Arc has a system log too, which is dropped; alone it is a native send. */
export function decodeTransfers(logs: readonly Log[], usdc: string): Transfer[] {
  const kept: Transfer[] = [];
  for (const transfer of logs.map(decodeTransfer)) {
    if (transfer === null) continue;
    if (transfer.token === usdc.toLowerCase()) {
      // The nearest before it, so that an earlier native send of the same amount still counts.
      const mirror = kept.findLastIndex((earlier) => isMirror(earlier, transfer));
      if (mirror !== -1) kept.splice(mirror, 1);
    }
    kept.push(transfer);
  }
  return kept;
}

/** ERC-20's has three topics and one word of data; ERC-721's token id is a fourth topic. */
function decodeTransfer(log: Log): Transfer | null {
  const [topic, from, to] = log.topics;
  if (topic !== TRANSFER_TOPIC || log.topics.length !== 3 || log.data.length !== 66) return null;
  const sender = toAddress(from);
  const recipient = toAddress(to);
  if (sender === null || recipient === null) return null;
  return { token: log.address, from: sender, to: recipient, amount: BigInt(log.data), logIndex: log.logIndex };
}

function toAddress(topic: string | undefined): `0x${string}` | null {
  return topic?.startsWith(`0x${'0'.repeat(24)}`) ? `0x${topic.slice(26)}` : null;
}

function isMirror(system: Transfer, own: Transfer): boolean {
  return (
    system.token === ARC_SYSTEM_ADDRESS &&
    system.from === own.from &&
    system.to === own.to &&
    system.amount === own.amount * NATIVE_PER_UNIT
  );
}
