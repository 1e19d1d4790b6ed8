import { type EventLog, type PoolDeltas, type PoolKind, type PoolSides, readWords } from './dex.ts';

/** v2's event of the reserves after a change. A pair emits it right before its Swap. */
export const SYNC_TOPIC: `0x${string}` = '0x1c411e9a96e071241c2f21f7726b17ae89e3cab4c78be50e062b03a9fffbbad1';

/** A pool beside one of its swaps. Prices are in whole USDC for a whole token, without the pool's fee. Floats, because nothing is paid with them. */
export interface PoolPrice {
  readonly priceAfter: number;
  /** Null where the swap's own events do not say it: then it is the price after the swap before it in the same pool. */
  readonly priceBefore: number | null;
  /** The USDC that the pool trades with at this price: v2's reserve, elsewhere that of a v2 pool as deep as the liquidity in range. */
  readonly usdcReserve: number;
}

/**
 * The price at which a pool stands after a swap. `sync` is the log right before the swap's, which v2 needs.
 * Null when the events do not say it.
 */
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

/** v3, Slipstream and v4 write the square root of the price in the pool's own order, times 2^96, and the liquidity in range. */
function fromSquareRoot({ data }: EventLog, pool: PoolSides): PoolPrice | null {
  const [, , rootX96, liquidity] = readWords(data);
  const root = Number(BigInt(`0x${rootX96 ?? '0'}`)) / 2 ** 96;
  const depth = Number(BigInt(`0x${liquidity ?? '0'}`));
  if (!(root > 0 && depth > 0)) return null;
  // The reserves of a v2 pool of this price and liquidity: liquidity / root of the first token, liquidity x root of the second.
  const [token, usdc] = wholes(pool.tokenFirst ? [depth / root, depth * root] : [depth * root, depth / root], pool);
  return { priceAfter: usdc / token, priceBefore: null, usdcReserve: usdc };
}

function wholes([token, usdc]: readonly [bigint | number, bigint | number], pool: PoolSides): [number, number] {
  return [Number(token) / 10 ** pool.tokenDecimals, Number(usdc) / 10 ** pool.usdcDecimals];
}
