import { decodeSwap, type PoolDeltas, type PoolKind } from './dex.ts';
import type { Log } from './transaction.ts';
import type { Transfer } from './transfers.ts';

/** The Swap event of a pool that anyone may have made; amounts from the pool's side, in base units. */
export interface Swap extends PoolDeltas {
  /** The family of the event. Slipstream pools emit v3's. */
  readonly family: 'v2' | 'v3' | 'v4';
  /** The pool's address; for v4 the pool id. */
  readonly pool: `0x${string}`;
  /** The contract that emitted the event: the pool, or v4's pool manager. */
  readonly contract: `0x${string}`;
  readonly logIndex: number;
}

const FAMILIES = ['v2', 'v3', 'v4'] as const satisfies readonly PoolKind[];

/** Every swap in a transaction's logs, in their order. An event whose both sides moved the same way (a loan paid back) is left out. */
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

/**
 * The token of which a transaction moved exactly `amount` into the contract (`to`) or out of it (`from`); null when no token or several did.
 * A Swap event does not name its tokens. The transfers that pay for it do, without another read of the chain.
 */
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
