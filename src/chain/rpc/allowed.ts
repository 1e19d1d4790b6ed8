import { Unavailable } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import { RANKS, type Rank, RESERVE } from './rank.ts';
import type { Member, Roster } from './roster.ts';

/** How often a used-up allowance is checked again, in milliseconds: short beside a block of half a second. */
export const LOOK_MS = 25;
const CHAIN_BUSY = 'chain_busy';

/**
 * Whether a request of this rank may go: after it the providers still have the share of their burst that RESERVE keeps for more important ranks.
 * True with no provider at all, so that the caller gets "no provider" and not "busy".
 */
function isAllowed(members: readonly Member[], rank: Rank): boolean {
  let [free, burst, most] = [0, 0, 0];
  for (const { allowance } of members) {
    const own = allowance.free();
    free += Math.max(0, own);
    burst += allowance.burst();
    most = Math.max(most, own);
  }
  if (members.length === 0 || free === Number.POSITIVE_INFINITY) return true;
  // A full bucket is enough for every rank, also where it is the only one and holds one request.
  return most >= 1 && free - 1 >= RESERVE[rank] * (burst - 1);
}

/** Who waits for the providers of a roster, by rank; of one rank the longest waiting first. */
type Lines = Readonly<Record<Rank, Set<symbol>>>;

const linesOf = new WeakMap<object, Lines>();

function openLines(roster: object): Lines {
  const lines = linesOf.get(roster) ?? {
    ...{ settle: new Set<symbol>(), sale: new Set<symbol>(), collect: new Set<symbol>() },
    ...{ offer: new Set<symbol>(), admit: new Set<symbol>(), free: new Set<symbol>() },
  };
  linesOf.set(roster, lines);
  return lines;
}

/** Whether none waits whose turn comes first: of a more important rank, or, where the waiter stands in line, of its own for longer. */
function isNext(lines: Lines, rank: Rank, waiter: symbol): boolean {
  const isFirst = RANKS.slice(0, RANKS.indexOf(rank)).every((before) => lines[before].size === 0);
  const [next] = lines[rank];
  return isFirst && (next === waiter || !lines[rank].has(waiter));
}

/**
 * Waits until a request of this rank may go, for at most `patienceMs`; resolves to false if it may not go then. Rejects with the signal's reason.
 * Those that wait go in turns: a more important rank first, then the one that has waited longest. The reserves alone would not keep that order:
 * where each provider's bucket holds one request, all ranks may go at the moment when one is full. A request without patience passes those of its
 * own rank that wait.
 */
export async function untilAllowed(
  roster: Pick<Roster, 'inOrder'>,
  rank: Rank,
  clock: Clock,
  patienceMs: number,
  signal?: AbortSignal,
): Promise<boolean> {
  const lines = openLines(roster);
  const waiter = Symbol(rank);
  const until = clock.nowMs() + patienceMs;
  const mayGo = () => isNext(lines, rank, waiter) && isAllowed(roster.inOrder(), rank);
  if (patienceMs > 0) lines[rank].add(waiter);
  try {
    while (!mayGo()) {
      const leftMs = until - clock.nowMs();
      if (leftMs <= 0) return false;
      await clock.sleep(Math.min(LOOK_MS, leftMs), signal);
    }
    return true;
  } finally {
    lines[rank].delete(waiter);
  }
}

/** Whether a call ended because the providers take no more requests now: none of them has answered it. */
export function isChainBusy(error: unknown): boolean {
  return error instanceof Unavailable && error.code === CHAIN_BUSY;
}

/** 503: the providers take no more requests of this rank now. */
export function chainBusy(): Unavailable {
  return new Unavailable(CHAIN_BUSY, 'The chain’s providers take no more requests just now; try again shortly.', 1);
}
