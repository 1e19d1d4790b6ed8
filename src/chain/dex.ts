/** Families of pools, by the events that they emit. Slipstream pools (Aerodrome's) emit v3's Swap; their factory has its own creation event. */
export type PoolKind = 'v2' | 'v3' | 'v4' | 'slipstream';

/** First topics: keccak-256 of the event's signature (checked by a test). */
export const SWAP_TOPICS = {
  'Swap(address,uint256,uint256,uint256,uint256,address)':
    '0xd78ad95fa46c994b6551d0da85fc275fe613ce37657fb8d5e3d130840159d822',
  'Swap(address,address,int256,int256,uint160,uint128,int24)':
    '0xc42079f94a6350d7e6235f29174924f928cc2ac818eb64fed8004e115fbcca67',
  'Swap(bytes32,address,int128,int128,uint160,uint128,int24,uint24)':
    '0x40e9cecb9f5f1f1c5b9c97dec2917b7ee92e57ba5563708daca94dd84ad7112f',
} as const;

/** The topic of the Swap event of each kind of pool. */
export const SWAP_TOPIC: Readonly<Record<PoolKind, `0x${string}`>> = {
  v2: SWAP_TOPICS['Swap(address,uint256,uint256,uint256,uint256,address)'],
  v3: SWAP_TOPICS['Swap(address,address,int256,int256,uint160,uint128,int24)'],
  slipstream: SWAP_TOPICS['Swap(address,address,int256,int256,uint160,uint128,int24)'],
  v4: SWAP_TOPICS['Swap(bytes32,address,int128,int128,uint160,uint128,int24,uint24)'],
};

/** The parts of an event that this folder reads; hex in lower case. */
export interface EventLog {
  readonly address: `0x${string}`;
  readonly topics: readonly `0x${string}`[];
  readonly data: `0x${string}`;
}

/** What a swap moved, in base units of token0 and token1: positive into the pool, negative out of it. */
export interface PoolDeltas {
  readonly amount0: bigint;
  readonly amount1: bigint;
}

const WORD = 64;

/**
 * The amounts of a Swap event of this kind of pool, always from the pool's side. Null for any other event and for one of another length.
 * v2 counts in and out apart. v3 and Slipstream report the pool's change. v4 reports the swapper's change, which has the opposite sign.
 */
export function decodeSwap(kind: PoolKind, { topics, data }: EventLog): PoolDeltas | null {
  if (topics[0] !== SWAP_TOPIC[kind]) return null;
  const words = readWords(data);
  if (words.length !== SWAP_WORDS[kind]) return null;
  const [a = '', b = '', c = '', d = ''] = words;
  if (kind === 'v2') return { amount0: unsigned(a) - unsigned(c), amount1: unsigned(b) - unsigned(d) };
  if (kind === 'v4') return { amount0: -signed(a), amount1: -signed(b) };
  return { amount0: signed(a), amount1: signed(b) };
}

/** The number of 32-byte words in the data: v2 has four amounts; v3 has two amounts, price, liquidity and tick; v4 adds the fee. */
const SWAP_WORDS: Record<PoolKind, number> = { v2: 4, v3: 5, slipstream: 5, v4: 6 };

/** The facts about a pool's two sides that a trade needs. */
export interface PoolSides {
  readonly tokenFirst: boolean;
  readonly tokenDecimals: number;
  readonly usdcDecimals: number;
}

/** An executed trade, in 10^-9 of a whole token and of a whole USDC. */
export interface Trade {
  readonly baseE9: bigint;
  readonly usdcE9: bigint;
}

/** The largest integer that the database holds. */
const MAX_E9 = 2n ** 63n - 1n;

/**
 * The trade that a swap made. Null when both sides moved the same way (a loan paid back with its fee), or when one side did not move.
 * Also null when an amount is below half of 10^-9 or above what 64 bits hold: such amounts give no price.
 */
export function toTrade({ amount0, amount1 }: PoolDeltas, pool: PoolSides): Trade | null {
  if (amount0 > 0n === amount1 > 0n || amount0 === 0n || amount1 === 0n) return null;
  const [token, usdc] = pool.tokenFirst ? [amount0, amount1] : [amount1, amount0];
  const baseE9 = toE9(token < 0n ? -token : token, pool.tokenDecimals);
  const usdcE9 = toE9(usdc < 0n ? -usdc : usdc, pool.usdcDecimals);
  const fits = [baseE9, usdcE9].every((value) => value > 0n && value <= MAX_E9);
  return fits ? { baseE9, usdcE9 } : null;
}

/** Base units of a token with `decimals` as 10^-9 of a whole one, rounded half up; exact up to nine decimals. */
export function toE9(amount: bigint, decimals: number): bigint {
  if (decimals <= 9) return amount * 10n ** BigInt(9 - decimals);
  const scale = 10n ** BigInt(decimals - 9);
  return (2n * amount + scale) / (2n * scale);
}

/** The 32-byte words of data after `0x`. Empty when the data ends within a word. */
export function readWords(data: string): string[] {
  if ((data.length - 2) % WORD !== 0) return [];
  return Array.from({ length: (data.length - 2) / WORD }, (_, at) => data.slice(2 + at * WORD, 2 + (at + 1) * WORD));
}

function unsigned(word: string): bigint {
  return BigInt(`0x${word}`);
}

/** A signed integer in two's complement; the ABI widens shorter integers to a whole word. */
function signed(word: string): bigint {
  return BigInt.asIntN(256, unsigned(word));
}
