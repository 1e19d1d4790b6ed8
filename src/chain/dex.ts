import type { Transfer } from './erc20.ts';
import type { Log } from './transaction.ts';

// The events of pools: what a swap moved, its trade, the price after it, and new pools.

/** By their events. Slipstream's (Aerodrome) emit v3's Swap, but have their own creation event. */
export type PoolKind = 'v2' | 'v3' | 'v4' | 'slipstream';

/** Hex in lower case. */
export interface EventLog {
  readonly address: `0x${string}`;
  readonly topics: readonly `0x${string}`[];
  readonly data: `0x${string}`;
}

/** Checked by a test. */
export const SWAP_TOPICS = {
  'Swap(address,uint256,uint256,uint256,uint256,address)':
    '0xd78ad95fa46c994b6551d0da85fc275fe613ce37657fb8d5e3d130840159d822',
  'Swap(address,address,int256,int256,uint160,uint128,int24)':
    '0xc42079f94a6350d7e6235f29174924f928cc2ac818eb64fed8004e115fbcca67',
  'Swap(bytes32,address,int128,int128,uint160,uint128,int24,uint24)':
    '0x40e9cecb9f5f1f1c5b9c97dec2917b7ee92e57ba5563708daca94dd84ad7112f',
} as const;

export const SWAP_TOPIC: Readonly<Record<PoolKind, `0x${string}`>> = {
  v2: SWAP_TOPICS['Swap(address,uint256,uint256,uint256,uint256,address)'],
  v3: SWAP_TOPICS['Swap(address,address,int256,int256,uint160,uint128,int24)'],
  slipstream: SWAP_TOPICS['Swap(address,address,int256,int256,uint160,uint128,int24)'],
  v4: SWAP_TOPICS['Swap(bytes32,address,int128,int128,uint160,uint128,int24,uint24)'],
};
/** v2 has four amounts; v3 two, price, liquidity and tick; v4 adds the fee. */
const SWAP_WORDS: Record<PoolKind, number> = { v2: 4, v3: 5, slipstream: 5, v4: 6 };

/** In base units: positive into the pool, negative out of it. */
interface PoolDeltas {
  readonly amount0: bigint;
  readonly amount1: bigint;
}

/** Null for another event or length. v3 and Slipstream report the pool's change, v4 the swapper's. */
export function decodeSwap(kind: PoolKind, { topics, data }: EventLog): PoolDeltas | null {
  if (topics[0] !== SWAP_TOPIC[kind]) return null;
  const words = readWords(data);
  if (words.length !== SWAP_WORDS[kind]) return null;
  const [a = '', b = '', c = '', d = ''] = words;
  if (kind === 'v2') return { amount0: unsigned(a) - unsigned(c), amount1: unsigned(b) - unsigned(d) };
  if (kind === 'v4') return { amount0: -signed(a), amount1: -signed(b) };
  return { amount0: signed(a), amount1: signed(b) };
}

const WORD = 64;

function readWords(data: string): string[] {
  if ((data.length - 2) % WORD !== 0) return [];
  return Array.from({ length: (data.length - 2) / WORD }, (_, at) => data.slice(2 + at * WORD, 2 + (at + 1) * WORD));
}

function unsigned(word: string): bigint {
  return BigInt(`0x${word}`);
}

/** The ABI widens shorter integers to a whole word, in two's complement. */
function signed(word: string): bigint {
  return BigInt.asIntN(256, unsigned(word));
}

export interface PoolSides {
  readonly tokenFirst: boolean;
  readonly tokenDecimals: number;
  readonly usdcDecimals: number;
}

/** In 10^-9 of a whole token and of a whole USDC. */
interface Trade {
  readonly baseE9: bigint;
  readonly usdcE9: bigint;
}

/** SQLite's largest integer. */
const MAX_E9 = 2n ** 63n - 1n;

/** Null when both sides moved the same way (a loan paid back), or an amount is too small or too large for a price. */
export function toTrade({ amount0, amount1 }: PoolDeltas, pool: PoolSides): Trade | null {
  if (amount0 > 0n === amount1 > 0n || amount0 === 0n || amount1 === 0n) return null;
  const [token, usdc] = pool.tokenFirst ? [amount0, amount1] : [amount1, amount0];
  const baseE9 = toE9(token < 0n ? -token : token, pool.tokenDecimals);
  const usdcE9 = toE9(usdc < 0n ? -usdc : usdc, pool.usdcDecimals);
  const fits = [baseE9, usdcE9].every((value) => value > 0n && value <= MAX_E9);
  return fits ? { baseE9, usdcE9 } : null;
}

/** Base units as 10^-9 of a whole token, rounded half up; exact up to nine decimals. */
export function toE9(amount: bigint, decimals: number): bigint {
  if (decimals <= 9) return amount * 10n ** BigInt(9 - decimals);
  const scale = 10n ** BigInt(decimals - 9);
  return (2n * amount + scale) / (2n * scale);
}

/** The native currency, as v4 names it. */
export const NATIVE_CURRENCY = '0x0000000000000000000000000000000000000000';

/** Checked by a test. */
export const CREATION_TOPICS = {
  'PairCreated(address,address,address,uint256)': '0x0d3648bd0f6ba80134a33ba9275ac585d9d315f0ad8355cddefde31afa28d0e9',
  'PoolCreated(address,address,uint24,int24,address)':
    '0x783cca1c0412dd0d695e784568c96da2e9c22ff989357a2e8b1d9b2b4e6b7118',
  'PoolCreated(address,address,int24,address)': '0xab0d57f0df537bb25e80245ef7748fa62353808c54d6e528a9dd20887aed9ac2',
  'Initialize(bytes32,address,address,uint24,int24,address,uint160,int24)':
    '0xdd466e674ea557f56295e2d0218a125ea4b4f0f6f3307b95f85e6110838d6438',
} as const;

export const CREATION_TOPIC: Readonly<Record<PoolKind, `0x${string}`>> = {
  v2: CREATION_TOPICS['PairCreated(address,address,address,uint256)'],
  v3: CREATION_TOPICS['PoolCreated(address,address,uint24,int24,address)'],
  slipstream: CREATION_TOPICS['PoolCreated(address,address,int24,address)'],
  v4: CREATION_TOPICS['Initialize(bytes32,address,address,uint24,int24,address,uint160,int24)'],
};

export interface CreatedPool {
  readonly kind: PoolKind;
  /** The pool's address; v4's pool id. */
  readonly id: `0x${string}`;
  readonly emitter: `0x${string}`;
  readonly token0: `0x${string}`;
  readonly token1: `0x${string}`;
}

/** Bits of a hook's address (Hooks.sol of v4-core): the Swap does not show what was paid. */
const HOOK_CHANGES_AMOUNTS = 0b1100n;

/** Null for any other event, and for a v4 pool whose hook changes amounts. */
export function decodeCreation(kind: PoolKind, { address, topics, data }: EventLog): CreatedPool | null {
  if (topics[0] !== CREATION_TOPIC[kind]) return null;
  const words = readWords(data);
  if (kind === 'v4') {
    const [, id, currency0, currency1] = topics;
    const hooks = words.length === 5 ? toAddress(words[2]) : null;
    if (!id || hooks === null || (BigInt(hooks) & HOOK_CHANGES_AMOUNTS) !== 0n) return null;
    return pool(kind, id, address, toAddress(currency0?.slice(2)), toAddress(currency1?.slice(2)));
  }
  // The pool's address: v2 (pool, count), v3 (tick spacing, pool), Slipstream (pool).
  const id = toAddress(words[kind === 'v3' ? 1 : 0]);
  return id && pool(kind, id, id, toAddress(topics[1]?.slice(2)), toAddress(topics[2]?.slice(2)));
}

function pool(
  kind: PoolKind,
  id: `0x${string}`,
  emitter: `0x${string}`,
  token0: `0x${string}` | null,
  token1: `0x${string}` | null,
): CreatedPool | null {
  return token0 && token1 ? { kind, id, emitter, token0, token1 } : null;
}

function toAddress(word: string | undefined): `0x${string}` | null {
  return word?.length === 64 && word.startsWith('0'.repeat(24)) ? `0x${word.slice(24)}` : null;
}

/** In whole USDC for a whole token, without the pool's fee. Nothing is paid with these floats. */
interface PoolPrice {
  readonly priceAfter: number;
  /** Null where the swap's events do not say it: it is the price after the pool's swap before. */
  readonly priceBefore: number | null;
  /** v2's reserve, else that of a v2 pool as deep as the liquidity in range. */
  readonly usdcReserve: number;
}

/** v2's reserves after a change. A pair emits it right before its Swap. */
export const SYNC_TOPIC: `0x${string}` = '0x1c411e9a96e071241c2f21f7726b17ae89e3cab4c78be50e062b03a9fffbbad1';

/** Null when the events do not say it. `sync` is the log right before the swap, which v2 needs. */
export function readPoolPrice(
  kind: PoolKind,
  swap: EventLog,
  deltas: PoolDeltas,
  sync: EventLog | undefined,
  pool: PoolSides,
): PoolPrice | null {
  const found = kind === 'v2' ? fromReserves(swap, deltas, sync, pool) : fromSquareRoot(swap, pool);
  if (found === null) return null;
  const { priceAfter, priceBefore, usdcReserve } = found;
  return [priceAfter, priceBefore ?? 1, usdcReserve].every((value) => Number.isFinite(value) && value > 0)
    ? found
    : null;
}

function fromReserves(
  swap: EventLog,
  deltas: PoolDeltas,
  sync: EventLog | undefined,
  pool: PoolSides,
): PoolPrice | null {
  if (sync?.address !== swap.address || sync.topics[0] !== SYNC_TOPIC) return null;
  const words = readWords(sync.data);
  if (words.length !== 2) return null;
  const [after0 = 0n, after1 = 0n] = words.map((word) => BigInt(`0x${word}`));
  const [before0, before1] = [after0 - deltas.amount0, after1 - deltas.amount1];
  const priceOf = (reserve0: bigint, reserve1: bigint) => {
    const [token, usdc] = wholes(pool.tokenFirst ? [reserve0, reserve1] : [reserve1, reserve0], pool);
    return { price: usdc / token, usdc };
  };
  const after = priceOf(after0, after1);
  return { priceAfter: after.price, priceBefore: priceOf(before0, before1).price, usdcReserve: after.usdc };
}

/** v3, Slipstream and v4 write the root of the price, times 2^96, and the liquidity in range. */
function fromSquareRoot({ data }: EventLog, pool: PoolSides): PoolPrice | null {
  const [, , rootX96, liquidity] = readWords(data);
  const root = Number(BigInt(`0x${rootX96 ?? '0'}`)) / 2 ** 96;
  const depth = Number(BigInt(`0x${liquidity ?? '0'}`));
  if (!(root > 0 && depth > 0)) return null;
  // A v2 pool of this price and liquidity has liquidity / root of the first token, liquidity x root of the second.
  const [token, usdc] = wholes(pool.tokenFirst ? [depth / root, depth * root] : [depth * root, depth / root], pool);
  return { priceAfter: usdc / token, priceBefore: null, usdcReserve: usdc };
}

function wholes([token, usdc]: readonly [bigint | number, bigint | number], pool: PoolSides): [number, number] {
  return [Number(token) / 10 ** pool.tokenDecimals, Number(usdc) / 10 ** pool.usdcDecimals];
}

/** Anyone may have made the pool. */
export interface Swap extends PoolDeltas {
  readonly family: 'v2' | 'v3' | 'v4';
  readonly pool: `0x${string}`;
  /** The emitter: the pool, or v4's pool manager. */
  readonly contract: `0x${string}`;
  readonly logIndex: number;
}

const FAMILIES = ['v2', 'v3', 'v4'] as const satisfies readonly PoolKind[];

/** Without events whose sides moved the same way (a loan paid back). */
export function decodeSwaps(logs: readonly Log[]): Swap[] {
  return logs.flatMap(({ logIndex, ...log }) => {
    for (const family of FAMILIES) {
      const deltas = decodeSwap(family, log);
      if (deltas === null) continue;
      const pool = family === 'v4' ? log.topics[1] : log.address;
      const isTrade = deltas.amount0 > 0n ? deltas.amount1 < 0n : deltas.amount0 < 0n && deltas.amount1 > 0n;
      return pool !== undefined && isTrade ? [{ family, pool, contract: log.address, ...deltas, logIndex }] : [];
    }
    return [];
  });
}

/** The only token of which exactly `amount` moved so, else null. A Swap names no tokens. */
export function movedToken(
  transfers: readonly Transfer[],
  side: { from: string } | { to: string },
  amount: bigint,
): `0x${string}` | null {
  const [party, contract] = 'from' in side ? (['from', side.from] as const) : (['to', side.to] as const);
  const tokens = new Set(
    transfers.filter((moved) => moved.amount === amount && moved[party] === contract).map(({ token }) => token),
  );
  const [only] = tokens;
  return tokens.size === 1 && only !== undefined ? only : null;
}
