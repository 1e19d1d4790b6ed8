import { Unavailable } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import type { PooledProvider, ProviderPool } from './providers.ts';
import { RANKS, type Rank, RESERVE } from './wire.ts';

// Who may send next, where the providers limit us: a more important rank first, then who has waited longest. Reserves
// alone would not keep that order: where each provider's bucket holds one request, all ranks may send when one is full.

export interface RankQueue {
  /** Waits until this rank may send; false when `waitMs` are over. Rejects with the signal's reason. */
  untilAllowed(rank: Rank, waitMs: number, signal?: AbortSignal): Promise<boolean>;
}

/** How often a used-up allowance is checked again, in milliseconds: short beside Arc's half a second for a block. */
export const RECHECK_MS = 25;
const CHAIN_BUSY = 'chain_busy';

type Lines = Readonly<Record<Rank, Set<symbol>>>;

/** Opens the queue of a pool, which needs exactly one. Who does not wait passes those that wait in the same rank. */
export function createRankQueue(pool: Pick<ProviderPool, 'inOrder'>, clock: Clock): RankQueue {
  const lines = Object.fromEntries(RANKS.map((rank) => [rank, new Set<symbol>()])) as Lines;

  return {
    untilAllowed: async (rank, waitMs, signal) => {
      const waiter = Symbol(rank);
      const until = clock.nowMs() + waitMs;
      const mayGo = () => isNext(lines, rank, waiter) && isAllowed(pool.inOrder(), rank);
      if (waitMs > 0) lines[rank].add(waiter);
      try {
        while (!mayGo()) {
          const leftMs = until - clock.nowMs();
          if (leftMs <= 0) return false;
          await clock.sleep(Math.min(RECHECK_MS, leftMs), signal);
        }
        return true;
      } finally {
        lines[rank].delete(waiter);
      }
    },
  };
}

function isNext(lines: Lines, rank: Rank, waiter: symbol): boolean {
  const isFirst = RANKS.slice(0, RANKS.indexOf(rank)).every((before) => lines[before].size === 0);
  const [next] = lines[rank];
  return isFirst && (next === waiter || !lines[rank].has(waiter));
}

/** Whether enough stays for more important ranks. True without a provider: the caller is to hear that, not "busy". */
function isAllowed(entries: readonly PooledProvider[], rank: Rank): boolean {
  let [free, burst, most] = [0, 0, 0];
  for (const { allowance } of entries) {
    const own = allowance.free();
    free += Math.max(0, own);
    burst += allowance.burst();
    most = Math.max(most, own);
  }
  if (entries.length === 0 || free === Number.POSITIVE_INFINITY) return true;
  // A full bucket is enough for every rank, also when there is only one bucket and it holds one request.
  return most >= 1 && free - 1 >= RESERVE[rank] * (burst - 1);
}

/** Whether the providers accept no more requests now. No provider has answered such a call. */
export function isChainBusy(error: unknown): boolean {
  return error instanceof Unavailable && error.code === CHAIN_BUSY;
}

export function chainBusy(): Unavailable {
  return new Unavailable(CHAIN_BUSY, 'The chain’s providers take no more requests just now; try again shortly.', 1);
}
