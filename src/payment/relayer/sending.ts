import type { RpcOutcome } from '../../chain/rpc/wire.ts';
import { bytesToHex } from '../../lib/hex.ts';
import { type Found, REVERTED } from '../settler.ts';
import { isBanned, isRevert } from '../usdc/payer-reads.ts';
import type { Plan, Prepared, RoundLimits, Sorting, Trial, Turn } from './state.ts';
import { batchOutcomes, type Flight, type Job, newest } from './transactions.ts';
import {
  apply,
  banPayer,
  endRound,
  finish,
  holdUnresolved,
  isGriefer,
  isPending,
  judgeLookUp,
  judgeRefused,
  RETRY_MS,
  type Ruling,
  requeue,
  requeueLater,
  startExpiry,
  startSorting,
} from './verdicts.ts';
import { lookUpLost, markSent, note, takeOperation, tryOperation } from './watching.ts';

// The sender's round; one ends before the next begins.
// 1. Jobs wait for others in the batch window. A round takes payments or one operation, then asks for nonce and prices.
// 2. It fails what is banned, sets aside what expires or is unresolved, reads the other payers and simulates.
// 3. It signs, notes on disk, and sends. A refused transaction's receipt is asked for before its nonce is free.
// 4. It examines the doubtful jobs.

const ROUND = 1000;
/** Milliseconds. What is sent now is mined in one of the next two blocks. */
const MINED_WITHIN_MS = 1000;
const TOO_CHEAP = /underpriced/i;
/** A node has the transaction already: messages of Ethereum's clients, and of the embedded network. */
const HAS_IT = /already (known|imported|exists)/i;
/** Too dear for the relayer's balance, or too large for the pool or a block. Half of the batch may be accepted. */
const TOO_MUCH = /insufficient (funds|balance)|oversized|exceeds|too (large|big|high)/i;

/** Jobs wait to share a transaction; with nothing in flight, only for the event loop's next turn. */
export function openWindow({ state, now, effects }: Turn): void {
  const endMs = state.flights.size() === 0 ? 0 : (state.queue[0]?.queuedMs ?? 0) + state.settings.gatherMs;
  state.sender = 'window';
  effects.push({ kind: 'wait', ms: Math.max(0, endMs - now.nowMs), timer: { name: 'window' } });
}

/** Takes payments or one operation. Asks for an unknown nonce, then for the prices. */
export function startRound(turn: Turn): void {
  const { state, effects } = turn;
  const operation = takeOperation(turn);
  const jobs = operation ? [] : state.queue.splice(0, ROUND).filter((job) => !job.ended);
  state.sender = operation || jobs.length > 0 ? 'round' : 'idle';
  if (state.sender === 'idle') return;
  state.round = { jobs, operation, rest: { doubtful: [], again: [] }, examined: [], next: 0 };
  effects.push({ kind: state.nonces.known() ? 'readFees' : 'countTransactions', for: 'round' });
}

/** Ends a round of which nothing was sent: the chain was not read or the ledger not written. */
export function giveUpRound({ state, effects }: Turn, error: unknown): void {
  const { jobs = [], operation = null } = state.round ?? {};
  const waiting = jobs.length + state.queue.length;
  effects.push({ kind: 'warn', detail: { err: error, waiting }, message: 'settling waits' });
  state.queue.unshift(...jobs.filter((job) => !job.ended));
  if (operation && !operation.ended) state.operations.unshift(operation);
  state.sender = 'pause';
  effects.push({ kind: 'wait', ms: RETRY_MS, timer: { name: 'pause' } });
}

/** Decides what must be simulated before it is sent. Nonce and prices are known. */
export function prepareRound(turn: Turn): void {
  const { state, now, effects } = turn;
  if (state.round?.operation) return void tryOperation(turn, state.round.operation);
  const { blockGas, gasPrice } = now.prices;
  const most = (waiting: number) => state.gas.most(blockGas, waiting);
  const limits: RoundLimits = {
    gas: state.gas.ceiling(blockGas),
    gasPrice,
    isCareful: now.isCareful,
    most,
    callWeight: state.gas.callWeight(),
  };
  const plan = planRound(takeOutExpired(turn, giveBackBanned(turn, state.round?.jobs ?? [])), limits);
  if (plan.free.length > 0) effects.push({ kind: 'tryOut', plan });
  else launch(turn, judgeTrial(plan, { readings: new Map(), simulated: [] }));
}

/** Sets aside what expires before it could be mined. Sending it could only cost gas. */
function takeOutExpired(turn: Turn, jobs: readonly Job[]): Job[] {
  const lastSecond = BigInt(Math.floor((turn.now.nowMs + MINED_WITHIN_MS) / 1000));
  const expired = jobs.filter((job) => job.intent.authorization.validBefore <= lastSecond);
  startExpiry(turn, expired);
  return jobs.filter((job) => !expired.includes(job));
}

/** Fails a banned payer's payments that no node has seen; each would waste as much gas. They may come again. */
function giveBackBanned(turn: Turn, jobs: readonly Job[]): Job[] {
  const { state, now } = turn;
  const isUnsent = ({ intent, nonces }: Job) => !intent.broadcast && nonces.size === 0;
  const isRefused = ({ intent }: Job) => isBanned(state.bans, bytesToHex(intent.authorization.from), now.nowMs);
  for (const job of jobs) if (isUnsent(job) && isRefused(job)) finish(turn, job, { kind: 'failed', reason: REVERTED });
  return jobs.filter((job) => !job.ended);
}

export function takeTrial(turn: Turn, plan: Plan, trial: Trial): void {
  learnPayers(plan.free, trial.readings);
  launch(turn, judgeTrial(plan, trial));
}

function launch(turn: Turn, { groups, ...rest }: Prepared): void {
  const { state, now } = turn;
  if (state.round) state.round.rest = rest;
  if (groups.length === 0) return void examineRest(turn);
  note(
    turn,
    groups.map((group) => state.flights.open(group, now.prices)),
    'round',
  );
}

export function sendNoted(turn: Turn, flights: readonly Flight[]): void {
  if (flights.length === 0) return void examineRest(turn);
  turn.effects.push({ kind: 'send', flights, raws: markSent(turn, flights) });
}

/** A batch without an answer may have arrived. Its flights stay until they are late. */
export function sendUnanswered(turn: Turn, flights: readonly Flight[], error: unknown): void {
  const detail = { err: error, transactions: flights.length };
  turn.effects.push({ kind: 'warn', detail, message: 'broadcast unanswered' });
  examineRest(turn);
}

/** Frees the nonce after a look for the receipt: this transaction itself may have used the "used" nonce. */
export function takeSent(turn: Turn, flights: readonly Flight[], outcomes: readonly RpcOutcome[]): void {
  const { state, effects } = turn;
  const refused: Flight[] = [];
  for (const [index, flight] of flights.entries()) {
    const reason = refusalOf(outcomes[index]);
    if (reason === null) continue;
    const { jobs } = newest(flight);
    refused.push(flight);
    if (TOO_CHEAP.test(reason)) state.flights.outbid(flight);
    if (TOO_MUCH.test(reason)) splitGroup(jobs);
    const detail = { reason, nonce: flight.nonce, payments: jobs.length };
    effects.push({ kind: 'warn', detail, message: 'broadcast refused' });
  }
  if (refused.length === 0) return void examineRest(turn);
  // A third party may have used the nonce, so the chain is asked for it again.
  state.nonces.forget();
  effects.push({ kind: 'wait', ms: RETRY_MS, timer: { name: 'refused', flights: refused } });
}

/** Why a node does not take a transaction. Null when it has it, also from before. */
export function refusalOf(outcome: RpcOutcome | undefined): string | null {
  if (!outcome || 'result' in outcome || HAS_IT.test(outcome.error.message)) return null;
  return outcome.error.message;
}

export function closeRefused(turn: Turn, refused: readonly Flight[]): void {
  const left = refused.filter(turn.state.flights.has);
  for (const flight of left) turn.state.flights.close(flight);
  lookUpLost(turn, left);
  startSorting(
    turn,
    left.flatMap((flight) => newest(flight).jobs),
    'refused',
  );
}

/** After the groups were sent: jobs that were set aside are queued again, or examined before the next round. */
export function examineRest(turn: Turn): void {
  const { doubtful, again } = turn.state.round?.rest ?? { doubtful: [], again: [] };
  requeue(
    turn,
    again.filter(({ unread }) => unread === 0),
  );
  requeueLater(
    turn,
    again.filter(({ unread }) => unread > 0),
  );
  if (doubtful.length > 0) startSorting(turn, doubtful, 'examine');
  else endRound(turn);
}

/** Failed reads of its payer after which a job is sent alone: a mined transaction shows the result. */
const UNREAD_LIMIT = 3;

/**
 * What is read and simulated: a payer may have changed since. A plain account's lone payment goes unchecked, as a check
 * costs more than it saves, unless it may have failed a batch or failures used up today's budget.
 */
export function planRound(jobs: readonly Job[], limits: RoundLimits): Plan {
  const unresolved = jobs.filter(({ unresolvedMs }) => unresolvedMs !== null);
  const known = jobs.filter(({ unresolvedMs }) => unresolvedMs === null);
  const [only] = known;
  const isPlain = only && !only.wasInFailedBatch && !only.hasCode && !limits.isCareful;
  if (only && known.length === 1 && isPlain) return { limits, free: [], trialGroups: [], alone: known, unresolved };
  const alone = known.filter(({ mustSend }) => mustSend);
  const free = known.filter(({ mustSend }) => !mustSend);
  const weigh = ({ intent }: Job): number => (intent.call ? limits.callWeight : 1);
  const waiting = free.reduce((sum, job) => sum + weigh(job), 0);
  return { limits, free, trialGroups: cutGroups(free, limits.most(waiting), weigh), alone, unresolved };
}

/** Notes what the reads of the payers showed. A job whose payer has code goes alone from now on. */
export function learnPayers(jobs: readonly Job[], readings: Trial['readings']): void {
  for (const job of jobs) {
    const reading = readings.get(job);
    job.unread = reading ? 0 : job.unread + 1;
    if (reading?.hasCode) job.hasCode = true;
    if (job.hasCode) job.maxGroup = 1;
  }
}

/** Sets aside used jobs and failed simulations. A payer with code goes alone; the rest of its group stays together. */
export function judgeTrial({ trialGroups, alone, unresolved }: Plan, { readings, simulated }: Trial): Prepared {
  const groups: Job[][] = [];
  const doubtful: Job[] = [];
  const again: Job[] = [];
  for (const [index, group] of trialGroups.entries()) {
    const through = throughOf(simulated[index], group.length);
    const together: Job[] = [];
    const unclear: Job[] = [];
    // In a simulation a payer with code may use up the others' gas. So what failed is tried again without that payer.
    const isDisturbed = group.length > 1 && group.some((job) => readings.get(job)?.hasCode);
    for (const [at, job] of group.entries()) {
      const reading = readings.get(job);
      if (!reading && job.unread >= UNREAD_LIMIT) groups.push([job]);
      else if (!reading) again.push(job);
      else if (reading.used) doubtful.push(job);
      else if (through?.[at] === false) (isDisturbed ? again : doubtful).push(job);
      else if (through === null) unclear.push(job);
      else if (reading.hasCode) groups.push([job]);
      else together.push(job);
    }
    // No payer has code, so something else disturbed the simulation. The next groups are smaller.
    if (!unclear.some(({ hasCode }) => hasCode)) splitGroup(unclear);
    again.push(...unclear);
    if (together.length > 0) groups.push(together);
  }
  return { groups: [...groups, ...alone.map((job) => [job])], doubtful: [...doubtful, ...unresolved], again };
}

/** Which jobs of a group would succeed by a simulation. Null when it shows nothing. */
export function throughOf(outcome: RpcOutcome | undefined, count: number): readonly boolean[] | null {
  if (!outcome) return null;
  if ('error' in outcome) return count === 1 && isRevert(outcome.error) ? [false] : null;
  // A transfer returns no value: that it did not revert is the result.
  if (count === 1) return [true];
  try {
    return batchOutcomes(outcome.result as `0x${string}`, count);
  } catch {
    return null;
  }
}

type Grouped = Pick<Job, 'maxGroup'>;

/** A group weighs at most `most`, or is one job. Sorted, so that one that must go alone splits no group. */
export function cutGroups<J extends Grouped>(jobs: readonly J[], most: number, weigh: (job: J) => number): J[][] {
  const groups: J[][] = [];
  let weight = 0;
  for (const job of [...jobs].sort((a, b) => b.maxGroup - a.maxGroup)) {
    const last = groups.at(-1);
    weight += weigh(job);
    // No earlier job of the group has a lower limit.
    if (last && last.length < job.maxGroup && weight <= most) last.push(job);
    else {
      groups.push([job]);
      weight = weigh(job);
    }
  }
  return groups;
}

/** What a batch did not settle goes on in groups of half its size, so what fails batches ends up alone. */
export function splitGroup(jobs: readonly Grouped[]): void {
  for (const job of jobs) job.maxGroup = Math.max(1, Math.ceil(jobs.length / 2));
}

/** Decides the jobs whose simulation failed. If unused, one ends without a transaction, or goes alone next round. */
export function examine(turn: Turn, { unused, toLookUp }: Sorting): void {
  const { round } = turn.state;
  holdUnresolved(turn, toLookUp);
  const jobs = unused.filter((job) => !job.ended);
  if (round) round.examined = jobs.map((job) => ({ job, isPending: isPending(turn, job) }));
  examineNext(turn);
}

/** One after the other, because each lookup may change what the next one finds. */
function examineNext(turn: Turn): void {
  const { state, effects } = turn;
  const { round } = state;
  const alone: Ruling[] = [];
  for (const [index, { job, ...known }] of round?.examined.entries() ?? []) {
    const verdict = judgeRefused(job, { ...known, provenBlock: state.nonces.provenBlock() });
    if (verdict.kind === 'sendAlone') alone.push({ job, verdict });
    if (!round || index < round.next) continue;
    if (isGriefer(job)) banPayer(turn, job);
    if (verdict.kind === 'lookUp')
      return void effects.push({ kind: 'lookUp', job, atBlock: verdict.atBlock, for: 'examination' });
    if (verdict.kind === 'end') {
      apply(turn, [{ job, verdict }]);
      suspectToken(turn, job);
    }
    round.next++;
  }
  apply(turn, alone);
  endRound(turn);
}

export function endExamined(turn: Turn, job: Job, found: Found): void {
  apply(turn, [judgeLookUp(job, found, { nowMs: turn.now.nowMs, isPending: isPending(turn, job) })]);
  if (found.kind === 'open') suspectToken(turn, job);
  if (turn.state.round) turn.state.round.next++;
  examineNext(turn);
}

/** A refused simulation of a plain account cost nothing, so there is no ban. But the token may refuse every payer. */
function suspectToken({ effects }: Turn, { hasCode }: Job): void {
  if (!hasCode) effects.push({ kind: 'tryToken', suspect: null });
}
