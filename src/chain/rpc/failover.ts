import { Unavailable, UpstreamFailed } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import type { PooledProvider, ProviderPool } from './providers.ts';
import {
  type AnswerError,
  classifyError,
  METHOD_NOT_FOUND,
  ProviderFailure,
  RANKS,
  type Rank,
  RESERVE,
  type RpcCall,
  RpcError,
  type RpcOptions,
  type RpcOutcome,
  WAIT_MS,
} from './wire.ts';

// Asks the providers in their order, by the rules at `createAsk`. Rule 1, the queue of the ranks, stands last.

export type Ask = (calls: readonly RpcCall[], rpc: RpcOptions) => Promise<RpcOutcome[]>;

/** A failure's message whose only cause is a limit (`providers.ts`, `wire.ts`). */
const RATE_LIMITED = 'rate limited';
/** Repeats for nodes that were behind. Arc's blocks take 500 ms. */
export const BEHIND_REPEATS = 2;
export const BEHIND_MS = 250;

/**
 * Asks one provider after another for the calls that are still unanswered; `fromOneProvider`: for all calls.
 * 1. the call waits for its rank's allowance, at most WAIT_MS. Then `settle` goes on without it, other ranks throw
 *    `chain_busy`. A call that only met rate limits starts again here;
 * 2. an answer that every correct node would give is final;
 * 3. a call refused by a limit, or by a node that lacks the method or the block, goes to the next provider;
 * 4. when a provider fails, all its calls go to the next;
 * 5. when the caller refuses the answers, the next provider is asked for all calls;
 * 6. when no provider is left: the last refusal where all have answered, but "method not found" only where all say
 *    so; `chain_busy` if all were limited; else UpstreamFailed;
 * 7. calls that are "beyond head block" start again at rule 1, at most twice, where the rank waits: nodes behind one
 *    URL may differ by a block.
 */
export function createAsk(pool: ProviderPool, { untilAllowed }: RankQueue, clock: Clock): Ask {
  return async (calls, rpc) => {
    const { rank = 'sale', signal } = rpc;
    const until = clock.nowMs() + WAIT_MS[rank];
    const round: Asked = {
      settled: new Array(calls.length),
      open: calls.map((call, at) => ({ call, at })),
      reasons: new Set(),
      isLastTry: false,
    };
    for (let repeats = 0; ; ) {
      const isAllowed = await untilAllowed(rank, until - clock.nowMs(), signal);
      if (!isAllowed && rank !== 'settle') throw chainBusy();
      round.isLastTry = clock.nowMs() >= until;
      try {
        const outcomes = await askAll(pool, calls, round, rpc);
        const mayRepeat = repeats < BEHIND_REPEATS && clock.nowMs() + BEHIND_MS < until;
        if (!mayRepeat || !round.open.some(({ at }) => isBehind(outcomes[at]))) return outcomes;
        repeats += 1;
        await clock.sleep(BEHIND_MS, signal);
      } catch (error) {
        if (!isChainBusy(error) || round.isLastTry) throw error;
        await clock.sleep(RECHECK_MS, signal);
      }
    }
  };
}

interface Asked {
  readonly settled: RpcOutcome[];
  open: { call: RpcCall; at: number }[];
  readonly reasons: Set<string>;
  /** The wait is over. A settlement then also asks providers whose allowance is used up. */
  isLastTry: boolean;
}

/** Rules 2 to 6, once. Throws `chain_busy` when a provider was skipped for its allowance. */
async function askAll(
  pool: ProviderPool,
  calls: readonly RpcCall[],
  round: Asked,
  rpc: RpcOptions,
): Promise<RpcOutcome[]> {
  const refused: { entry: PooledProvider; reason: string }[] = [];
  round.reasons.clear();
  const entries = pool.inOrder(rpc.turn);
  const asked = askable(entries, round.isLastTry && rpc.rank === 'settle');
  for (const entry of asked) {
    await askProvider(pool, entry, round, rpc);
    if (round.open.length > 0) continue;
    const reason = rpc.refuse?.(round.settled) ?? null;
    if (reason === null) {
      for (const earlier of refused) pool.failed(earlier.entry, new ProviderFailure('malformed', earlier.reason));
      return round.settled;
    }
    round.reasons.add(reason);
    refused.push({ entry, reason });
    round.open = calls.map((call, at) => ({ call, at }));
  }
  rpc.signal?.throwIfAborted();
  if (asked.length < entries.length) throw chainBusy();
  return unanswered(round, rpc);
}

function askable(entries: readonly PooledProvider[], mustNotFail: boolean): readonly PooledProvider[] {
  const ready = entries.filter(({ allowance }) => allowance.free() >= 1);
  if (!mustNotFail) return ready;
  return [...ready, ...entries.filter((entry) => !ready.includes(entry))];
}

/** Rules 2 to 4: without methods that it is known to lack, unless it must answer all calls. */
async function askProvider(pool: ProviderPool, entry: PooledProvider, round: Asked, rpc: RpcOptions) {
  const { signal, onRequest, fromOneProvider = false } = rpc;
  const asked = fromOneProvider ? round.open : round.open.filter(({ call }) => !pool.lacks(entry, call.method));
  if (asked.length === 0) return;
  const questions = asked.map(({ call }) => call);
  onRequest?.();
  const answers = await pool.call(entry, questions, signal).catch((error: unknown) => {
    if (!(error instanceof ProviderFailure)) throw error;
    round.reasons.add(error.message);
  });
  if (answers === undefined) return;
  const done = new Set<number>();
  let isLimited = false;
  asked.forEach(({ call, at }, position) => {
    const answer = answers[position];
    if (answer === undefined) return;
    const isLacking = 'error' in answer && answer.error.code === METHOD_NOT_FOUND;
    // "Method not found" means that no provider has it: it does not replace another's refusal for another reason.
    if (fromOneProvider || !isLacking || !isOtherRefusal(round.settled[at]))
      round.settled[at] = 'error' in answer ? { error: toRpcError(answer.error) } : answer;
    const verdict = 'error' in answer ? classifyError(answer.error) : 'final';
    if (verdict === 'final') done.add(at);
    if (verdict === 'rateLimited') isLimited = true;
    if (isLacking) pool.noteLacking(entry, call.method);
  });
  if (!fromOneProvider || done.size === asked.length) round.open = round.open.filter(({ at }) => !done.has(at));
  if (!isLimited) return;
  round.reasons.add(RATE_LIMITED);
  pool.failed(entry, new ProviderFailure('rateLimited', RATE_LIMITED));
}

/** Whether a provider has the method and refuses the call. A limit says nothing of what it has. */
const isOtherRefusal = (outcome: RpcOutcome | undefined): boolean =>
  outcome !== undefined &&
  'error' in outcome &&
  outcome.error.code !== METHOD_NOT_FOUND &&
  classifyError(outcome.error) !== 'rateLimited';

/** Rule 6. */
function unanswered({ settled, open, reasons }: Asked, { refuse }: RpcOptions): RpcOutcome[] {
  if (reasons.size === 0 && open.every(({ at }) => settled[at] !== undefined)) {
    const reason = refuse?.(settled) ?? null;
    if (reason === null) return settled;
    reasons.add(reason);
  }
  if (reasons.size === 1 && reasons.has(RATE_LIMITED)) throw chainBusy();
  throw new UpstreamFailed('chain', `no provider answered (${[...reasons].join('; ') || 'none serves this chain'})`);
}

/** Whether the node's head is older than the block. */
export function isBehind(outcome: RpcOutcome | undefined): boolean {
  return outcome !== undefined && 'error' in outcome && classifyError(outcome.error) === 'behind';
}

export function toRpcError({ code, message, data }: AnswerError): RpcError {
  return new RpcError(code, message, data);
}

// Who may send next, where the providers limit us: the more important rank, then who has waited longest. Reserves alone
// do not keep that order: where each bucket holds one request, all ranks may send when one is full.

export interface RankQueue {
  /** Waits until this rank may send; false when `waitMs` are over. Rejects with the signal's reason. */
  untilAllowed(rank: Rank, waitMs: number, signal?: AbortSignal): Promise<boolean>;
}

/** How often a used-up allowance is checked again: short beside Arc's half a second for a block. */
export const RECHECK_MS = 25;
const CHAIN_BUSY = 'chain_busy';

type Lines = Readonly<Record<Rank, Set<symbol>>>;

/** A pool needs exactly one. Who does not wait passes those that wait in the same rank. */
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

/** Whether enough stays for more important ranks. True without a provider: that is not "busy". */
function isAllowed(entries: readonly PooledProvider[], rank: Rank): boolean {
  let [free, burst, most] = [0, 0, 0];
  for (const { allowance } of entries) {
    const own = allowance.free();
    free += Math.max(0, own);
    burst += allowance.burst();
    most = Math.max(most, own);
  }
  if (entries.length === 0 || free === Number.POSITIVE_INFINITY) return true;
  // A full bucket is enough for every rank, also a single one of one request.
  return most >= 1 && free - 1 >= RESERVE[rank] * (burst - 1);
}

/** No provider has answered such a call. */
export function isChainBusy(error: unknown): boolean {
  return error instanceof Unavailable && error.code === CHAIN_BUSY;
}

export function chainBusy(): Unavailable {
  return new Unavailable(CHAIN_BUSY, 'The chain’s providers take no more requests just now; try again shortly.', 1);
}
