import type { LRUCache } from 'lru-cache';
import { readAtBlock } from '../../chain/named-block.ts';
import { type ChainClient, ranked } from '../../chain/rpc/client.ts';
import { chainBusy, isChainBusy } from '../../chain/rpc/failover.ts';
import { data, quantity, type RpcCall, RpcError, type RpcOutcome, readOutcome } from '../../chain/rpc/wire.ts';
import { UpstreamFailed } from '../../errors.ts';
import { type Clock, DAY_MS, systemClock } from '../../lib/clock.ts';
import { bytesToHex } from '../../lib/hex.ts';
import { boundedMap } from '../../lib/limits/count.ts';
import { createSharedReads, type SharedRead } from '../../lib/limits/queue.ts';
import type { PayerReading } from '../rail.ts';
import { authorizationStateCalldata, balanceOfCalldata } from './token.ts';

// Reads of payers: many share one request at one block, and unverified ones wait in a queue. What is remembered: who
// held too little, for some seconds; whose settlements move nothing, for a day. And what counts as a revert.

/** Creation code of `PayerReader.sol`, which documents the answer. An `eth_call` without `to` runs it undeployed. */
export const PAYER_READER_CODE =
  '0x608060405234801561000f575f5ffd5b5060405161040b38038061040b83398101604081905261002e916102e5565b5f8151600161003d91906103d1565b6001600160401b0381111561005457610054610279565b60405190808252806020026020018201604052801561007d578160200160208202803683370190505b50905043815f81518110610093576100936103f6565b60209081029190910101525f5b8251811015610101576100d2848483815181106100bf576100bf6103f6565b602002602001015161010d60201b60201c565b826100de8360016103d1565b815181106100ee576100ee6103f6565b60209081029190910101526001016100a0565b50602081510260208201f35b805160208201516040516001600160a01b03909216602483015260448201525f908190819061016e90869060640160408051601f198184030181529190526020810180516001600160e01b039081166374a5008160e11b1790915261023516565b85516040516001600160a01b03909116602482015291935091505f9081906101c890889060440160408051601f198184030181529190526020810180516001600160e01b039081166370a0823160e01b1790915261023516565b909250905060086001600160f81b0382116101e357816101ec565b6001600160f81b035b901b94508380156101fa5750815b15610206576001851794505b8215610213576002851794505b85516001600160a01b03163b1561022b576004851794505b5050505092915050565b5f5f60205f8451602086018762015f90fa601f3d11169150811561025757505f515b9250929050565b80516001600160a01b0381168114610274575f5ffd5b919050565b634e487b7160e01b5f52604160045260245ffd5b604080519081016001600160401b03811182821017156102af576102af610279565b60405290565b604051601f8201601f191681016001600160401b03811182821017156102dd576102dd610279565b604052919050565b5f5f604083850312156102f6575f5ffd5b6102ff8361025e565b60208401519092506001600160401b0381111561031a575f5ffd5b8301601f8101851361032a575f5ffd5b80516001600160401b0381111561034357610343610279565b61035260208260051b016102b5565b8082825260208201915060208360061b850101925087831115610373575f5ffd5b6020840193505b828410156103c35760408489031215610391575f5ffd5b61039961028d565b6103a28561025e565b8152602085015160208201528083525060208201915060408401935061037a565b809450505050509250929050565b808201808211156103f057634e487b7160e01b5f52601160045260245ffd5b92915050565b634e487b7160e01b5f52603260045260245ffdfe';

/** Unverified payers that may wait while no provider's limit is known: 28 requests of MOST_PAYERS. */
const PLACES = 4096;
/** Milliseconds that such a payer waits: six blocks on Arc. */
const WAIT_MS = 3000;
/** Sizes only the queue: what half of the providers' rate reads within WAIT_MS. Requests wait for rank `offer`. */
const QUEUE_RATE_SHARE = 0.5;
/** Payers of a request: 10,639 bytes of EIP-3860's 49,152, and about 3M gas of the 30M that public nodes allow. */
const MOST_PAYERS = 150;
/** Payers of one JSON-RPC batch: the block's header and three calls for each, of the 100 that nodes take. */
const MOST_IN_BATCH = 33;
/** Milliseconds until a node that refused such a call is asked again. The question costs one request. */
const REFUSED_MS = 60_000;

/** Least precedence of a payer whose client has had no uncharged failure in this minute. */
export const WITHOUT_FAILURE = 2;

const ANSWERED = 1n;
const USED = 2n;
const HAS_CODE = 4n;
const FLAG_BITS = 8n;

interface Payer {
  readonly from: Uint8Array;
  readonly nonce: Uint8Array;
}

/**
 * Concurrent payers share a request. `block` is the one that was read, for all members where the node allows it. Throws
 * UpstreamFailed for one without the token's answer, or all if it fails.
 */
export function createPayerReader(
  chain: ChainClient,
  usdc: `0x${string}`,
  clock: Clock = systemClock,
): SharedRead<Payer, PayerReading> {
  return createSharedReads(clock, createAsk(chain, usdc, clock), MOST_PAYERS);
}

/** Reads unverified payers; clients take turns. Throws Unavailable (`chain_busy`) at once where there is no place. */
export function createAdmissionReader(
  chain: ChainClient,
  usdc: `0x${string}`,
  clock: Clock = systemClock,
): SharedRead<Payer, PayerReading> {
  const ask = createAsk(ranked(chain, 'offer'), usdc, clock);
  const places = () =>
    Math.min(PLACES, Math.ceil(chain.requestsPerSecond() * QUEUE_RATE_SHARE * MOST_PAYERS * (WAIT_MS / 1000)));
  const queue = { places, waitMs: WAIT_MS, refusal: chainBusy, isRefusal: isChainBusy, preferredFrom: WITHOUT_FAILURE };
  return createSharedReads(clock, ask, MOST_PAYERS, queue, () => chain.ready('offer'));
}

function createAsk(chain: ChainClient, usdc: `0x${string}`, clock: Clock) {
  let refusedUntilMs = 0;

  return async (payers: readonly Payer[]): Promise<readonly (PayerReading | Error)[]> => {
    if (clock.nowMs() >= refusedUntilMs) {
      const readings = await inOneCall(chain, usdc, payers);
      if (readings) return readings;
      refusedUntilMs = clock.nowMs() + REFUSED_MS;
    }
    return inOneBatch(chain, usdc, payers);
  };
}

/** Null when the node refuses such a call, or answers something else, as one does that ignores the missing `to`. */
async function inOneCall(
  chain: ChainClient,
  usdc: `0x${string}`,
  payers: readonly Payer[],
): Promise<(PayerReading | Error)[] | null> {
  let answer: unknown;
  try {
    answer = await chain.request<unknown>('eth_call', [{ data: payerReaderCall(usdc, payers) }, 'latest']);
  } catch (error) {
    if (error instanceof RpcError) return null;
    throw error;
  }
  if (typeof answer !== 'string' || !/^0x[0-9a-f]+$/i.test(answer)) return null;
  const [head, ...words] = (answer.slice(2).match(/.{64}/g) ?? []).map((word) => BigInt(`0x${word}`));
  if (head === undefined || answer.length !== 2 + 64 * (payers.length + 1)) return null;
  return words.map((word) => {
    if ((word & ANSWERED) === 0n) return unreadable();
    const [used, hasCode] = [(word & USED) !== 0n, (word & HAS_CODE) !== 0n];
    return { used, hasCode, balance: word >> FLAG_BITS, block: Number(head) };
  });
}

/** Reads at one named block: no answer of a node that is behind stands beside a newer one. Each part has a provider. */
async function inOneBatch(
  chain: ChainClient,
  usdc: `0x${string}`,
  payers: readonly Payer[],
): Promise<(PayerReading | Error)[]> {
  const block = await chain.agreed.head();
  const parts = Array.from({ length: Math.ceil(payers.length / MOST_IN_BATCH) }, (_, part) =>
    readPart(chain, usdc, block, payers.slice(part * MOST_IN_BATCH, (part + 1) * MOST_IN_BATCH)),
  );
  return (await Promise.all(parts)).flat();
}

async function readPart(
  chain: ChainClient,
  usdc: `0x${string}`,
  block: number,
  payers: readonly Payer[],
): Promise<(PayerReading | Error)[]> {
  const callsAt = (tag: string): RpcCall[] =>
    payers.flatMap(({ from, nonce }) => [
      { method: 'eth_call', params: [{ to: usdc, data: authorizationStateCalldata(from, nonce) }, tag] },
      { method: 'eth_call', params: [{ to: usdc, data: balanceOfCalldata(from) }, tag] },
      { method: 'eth_getCode', params: [bytesToHex(from), tag] },
    ]);
  const read = await readAtBlock(chain, block, callsAt, { isConfirmed: false });
  return payers.map((_, at) => (read ? readingOf(block, read.outcomes.slice(3 * at, 3 * at + 3)) : unreadable()));
}

function readingOf(block: number, [state, balance, code]: readonly RpcOutcome[]): PayerReading | Error {
  try {
    return {
      block,
      used: readOutcome(state, quantity, 'authorization') !== 0n,
      balance: readOutcome(balance, quantity, 'balance'),
      hasCode: readOutcome(code, data, 'code').length > 2,
    };
  } catch (error) {
    return unreadable(error);
  }
}

function unreadable(cause?: unknown): UpstreamFailed {
  return new UpstreamFailed('chain', 'the token contract could not be read', cause);
}

/** The creation code with its arguments, in Solidity's encoding of `(address, (address, bytes32)[])`. */
export function payerReaderCall(usdc: `0x${string}`, payers: readonly Payer[]): `0x${string}` {
  const number = (value: number): string => value.toString(16).padStart(64, '0');
  const address = (hex: string): string => hex.slice(2).toLowerCase().padStart(64, '0');
  const questions = payers.map(({ from, nonce }) => address(bytesToHex(from)) + bytesToHex(nonce).slice(2));
  return `${PAYER_READER_CODE}${address(usdc)}${number(64)}${number(payers.length)}${questions.join('')}`;
}

/** Milliseconds: six blocks on Arc. A payer that receives money waits no longer than this. */
const EMPTY_MS = 3000;
/** Payers remembered. Beyond that the oldest is forgotten, which costs one place in a shared read. */
const MAX_PAYERS = 10_000;

/** Remembers balances. A payer whose balance is too low is not read again for some seconds. */
export function createEmptyPayers(clock: Clock) {
  const seen = boundedMap<string, { readonly balance: bigint; readonly untilMs: number }>(MAX_PAYERS);

  return {
    /** Seconds until another read, because the balance was just below `amount` (USDC base units). 0: read now. */
    secondsBelow(payer: string, amount: bigint): number {
      const last = seen.peek(payer);
      if (!last || last.balance >= amount) return 0;
      return Math.max(0, Math.ceil((last.untilMs - clock.nowMs()) / 1000));
    },
    note(payer: string, balance: bigint): void {
      seen.set(payer, { balance, untilMs: clock.nowMs() + EMPTY_MS });
    },
  };
}

/** More than gas griefers can afford. Beyond that the oldest ban is dropped. */
const MAX_BANS = 10_000;

/** Ends of bans by payer, in Unix milliseconds. The newest ban is last. */
export type Bans = LRUCache<string, number>;

export const createBans = (): Bans => boundedMap(MAX_BANS);

export function ban(bans: Bans, payer: string, nowMs: number): void {
  bans.set(payer, nowMs + DAY_MS);
}

export function isBanned(bans: Bans, payer: string, nowMs: number): boolean {
  return (bans.peek(payer) ?? 0) > nowMs;
}

export function bannedPayers(bans: Bans, nowMs: number): string[] {
  return [...bans.rkeys()].filter((payer) => isBanned(bans, payer, nowMs));
}

/** Bans for settlements that move nothing or use most of their gas. In memory: a restart costs a transaction each. */
export function createPayerBans(clock: Clock) {
  const bans: Bans = createBans();
  return {
    add: (payer: string): void => ban(bans, payer, clock.nowMs()),
    has: (payer: string): boolean => isBanned(bans, payer, clock.nowMs()),
    all: (): string[] => bannedPayers(bans, clock.nowMs()),
  };
}

/** A call that the contract itself ended, in geth's words, then in those of revm, which reth and anvil run. */
const GETH = /revert|out of gas|invalid opcode|stack|bad jump|invalid jump|write protection|return data out of bounds/i;
const REVM = /OutOfGas|InvalidFEOpcode|OpcodeNotFound|InvalidJump|OutOfOffset|StateChangeDuringStaticCall|InsideStatic/;

/** Whether a contract ended a call: code 3, geth's and reth's for a revert, or a node's words. Others say nothing. */
export function isRevert(error: unknown): boolean {
  return error instanceof RpcError && (error.code === 3 || GETH.test(error.message) || REVM.test(error.message));
}
