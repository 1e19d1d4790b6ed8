import { UpstreamFailed } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import { BEHIND_MS, BEHIND_REPEATS, chainBusy, isBehind, type RankQueue, RECHECK_MS, toRpcError } from './failover.ts';
import type { PooledProvider, ProviderPool } from './providers.ts';
import type { Said, Trust } from './trust.ts';
import {
  classifyError,
  ProviderFailure,
  type ReadStatements,
  type RpcCall,
  RpcError,
  type RpcOptions,
  type RpcOutcome,
  type Statement,
  WAIT_MS,
} from './wire.ts';

// What only counts when two providers say it. The rules are at `createWitnesses`.

export type AskWitnesses = (question: Question) => Promise<RpcOutcome[]>;

interface Question {
  readonly calls: readonly RpcCall[];
  readonly statements: ReadStatements;
  readonly rpc: RpcOptions;
}

interface Heard {
  readonly entry: PooledProvider;
  readonly outcomes: readonly RpcOutcome[];
  readonly statements: readonly (Statement | null)[];
}

/** How many providers must say the same. */
const ENOUGH = 2;
/** How long a provider whose statement nobody confirmed is asked last, in milliseconds. */
const DOUBTED_MS = 30_000;
/** Of JSON-RPC's range for servers (-32000 to -32099); no node of ours uses it. */
const UNCONFIRMED_CODE = -32_098;

/** No two providers have said the same of a call. It proves nothing. */
export class Unconfirmed extends RpcError {
  constructor() {
    super(UNCONFIRMED_CODE, 'no two RPC providers have said the same');
    this.name = 'Unconfirmed';
  }
}

/**
 * Asks providers of different hosts, one after the other, until two of them gave the same answer to each call:
 * 1. Each is asked for all calls by one request. A poll (`isPoll`) ends where the first says nothing.
 * 2. The first two that say the same decide a call. Where two differ, more are asked, and the larger number decides.
 * 3. One that the deciding ones contradict about the same block is set apart. Without a decision the call is
 *    `Unconfirmed`, and two that differ are in dispute.
 * 4. One that nobody confirms, or that is outvoted, is asked last for a while: it may be ahead, or lie.
 * 5. Where nobody says anything, the first one's refusal or `null` counts. Any other result is `Unconfirmed`, because
 *    another answer of the batch may have been unreadable.
 * Rejects as `request` does when nobody answers.
 */
export function createWitnesses(clock: Clock, pool: ProviderPool, queue: RankQueue, trust: Trust): AskWitnesses {
  const ask: AskWitnesses = async (question) => {
    const { rank = 'sale', signal, isPoll = false } = question.rpc;
    const until = clock.nowMs() + WAIT_MS[rank];
    if (!(await queue.untilAllowed(rank, WAIT_MS[rank], signal)) && rank !== 'settle') throw chainBusy();
    const heard: Heard[] = [];
    for (let repeats = 0; ; repeats++) {
      await askUntilDecided(clock, pool, question, heard, until);
      const lacking =
        isPoll || isDecided(question, heard) ? [] : heard.filter(({ outcomes }) => outcomes.some(isBehind));
      if (lacking.length === 0 || repeats === BEHIND_REPEATS || clock.nowMs() + BEHIND_MS > until) break;
      for (const one of lacking) heard.splice(heard.indexOf(one), 1);
      await clock.sleep(BEHIND_MS, signal);
    }
    signal?.throwIfAborted();
    if (heard.length === 0) throw new UpstreamFailed('chain', 'no provider answered');
    return conclude(clock, trust, question, heard, ask);
  };
  return ask;
}

/** Rules 1 and 2. One without allowance comes later; a dispute or a late settlement asks it all the same. */
async function askUntilDecided(
  clock: Clock,
  pool: ProviderPool,
  question: Question,
  heard: Heard[],
  until: number,
): Promise<void> {
  const { rank = 'sale', signal } = question.rpc;
  const isHeard = ({ provider }: PooledProvider) => heard.some(({ entry }) => entry.provider.host === provider.host);
  // Another URL of a host is asked where the first one fails.
  let pending = pool.inOrder(question.rpc.turn).filter((entry) => !isHeard(entry));
  while (pending.length > 0 && !isDecided(question, heard)) {
    const isLate = clock.nowMs() >= until;
    const mustAsk = isDisputed(question, heard) || (isLate && rank === 'settle');
    const next = pending.find(({ allowance }) => allowance.free() >= 1) ?? (mustAsk && pending[0]);
    if (next) {
      const answered = await askOne(pool, next, question);
      pending = pending.filter((entry) => entry !== next);
      // One that limits us is asked again within the wait.
      if (answered === 'limited') pending = mustAsk ? pending : [...pending, next];
      else if (answered) heard.push(answered);
      pending = pending.filter((entry) => !isHeard(entry));
    } else if (isLate) return;
    else await clock.sleep(RECHECK_MS, signal);
  }
}

/** `limited` when the provider limits one of the calls; null without an answer. */
export async function askOne(
  pool: ProviderPool,
  entry: PooledProvider,
  { calls, statements, rpc }: Question,
): Promise<Heard | 'limited' | null> {
  rpc.onRequest?.();
  const answers = await pool.call(entry, calls, rpc.signal).catch((error: unknown) => {
    if (!(error instanceof ProviderFailure)) throw error;
    return error.kind === 'rateLimited' ? ('limited' as const) : null;
  });
  if (answers === null || answers === 'limited') return answers;
  if (answers.some((answer) => 'error' in answer && classifyError(answer.error) === 'rateLimited')) {
    pool.failed(entry, new ProviderFailure('rateLimited', 'rate limited'));
    return 'limited';
  }
  const outcomes = answers.map(
    (answer): RpcOutcome => ('error' in answer ? { error: toRpcError(answer.error) } : answer),
  );
  return { entry, outcomes, statements: statements(outcomes, calls) };
}

export function oneAHost(entries: readonly PooledProvider[]): PooledProvider[] {
  const byHost = Map.groupBy(entries, ({ provider }) => provider.host);
  return [...byHost.values()].flatMap(([first]) => first ?? []);
}

function isDecided({ calls, rpc: { isPoll = false } }: Question, heard: readonly Heard[]): boolean {
  if (heard.length === 0) return false;
  return calls.every((_, at) => {
    const said = saidOf(heard, at);
    // One that is behind knows nothing of what is new.
    const isUneventful = isPoll && heard.some(({ entry }) => !entry.isOffHead);
    return said.length === 0 ? isUneventful : decision(said) !== null;
  });
}

function isDisputed({ calls }: Question, heard: readonly Heard[]): boolean {
  return calls.some((_, at) => {
    const said = saidOf(heard, at);
    return said.some((one) => !isSame(one, said[0] ?? one));
  });
}

function saidOf(heard: readonly Heard[], at: number): Said[] {
  return heard.flatMap(({ entry, statements }) => {
    const statement = statements[at];
    return statement ? [{ host: entry.provider.host, about: statement.about, says: statement.says }] : [];
  });
}

const isSame = (one: Said, other: Said): boolean => one.about === other.about && one.says === other.says;

/** The statement that two providers make, and more than any other has. Null without one. */
function decision(said: readonly Said[]): Said | null {
  const counts = said.map((one) => said.filter((other) => isSame(one, other)).length);
  const most = Math.max(0, ...counts);
  const winner = said[counts.indexOf(most)];
  if (most < ENOUGH || !winner) return null;
  const isTied = said.some((one, at) => counts[at] === most && !isSame(one, winner));
  return isTied ? null : winner;
}

/** Rules 3 to 5. `ask` asks a disputed question again, with all its calls, also after a poll. */
function conclude(
  clock: Clock,
  trust: Trust,
  asked: Question,
  heard: readonly Heard[],
  ask: AskWitnesses,
): RpcOutcome[] {
  const { calls } = asked;
  const again = () => ask({ ...asked, rpc: { rank: 'settle' } });
  return calls.map((call, at) => {
    const said = saidOf(heard, at);
    if (said.length === 0) return unsaid(heard[0]?.outcomes[at]);
    const winner = decision(said);
    const question = JSON.stringify([call.method, ...call.params]);
    if (!winner) {
      doubtLone(heard, at, said, clock);
      if (said.some((one) => !isSame(one, said[0] ?? one))) trust.dispute(question, said, again);
      return { error: new Unconfirmed() };
    }
    for (const one of said) {
      if (isSame(one, winner)) continue;
      for (const { entry } of heard)
        if (entry.provider.host === one.host) entry.doubtedUntilMs = clock.nowMs() + DOUBTED_MS;
      if (one.about !== null && one.about === winner.about) trust.setApart(question, one, winner);
    }
    trust.agree(question);
    const decided = heard.find(({ entry }) => entry.provider.host === winner.host);
    return decided?.outcomes[at] ?? { error: new Unconfirmed() };
  });
}

/** Rule 5. */
function unsaid(outcome: RpcOutcome | undefined): RpcOutcome {
  const isEmpty = outcome !== undefined && ('error' in outcome || outcome.result === null);
  return isEmpty ? outcome : { error: new Unconfirmed() };
}

/** Rule 4, but for the outvoted. Two others must have said nothing: the quicker of two is not doubted. */
function doubtLone(heard: readonly Heard[], at: number, said: readonly Said[], clock: Clock): void {
  if (said.length !== 1 || heard.length <= ENOUGH) return;
  const lone = heard.find(({ statements }) => statements[at]);
  if (lone) lone.entry.doubtedUntilMs = clock.nowMs() + DOUBTED_MS;
}
