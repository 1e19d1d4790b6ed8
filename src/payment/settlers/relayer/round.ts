import type { RpcOutcome } from '../../../chain/rpc/wire.ts';
import { bytesToHex } from '../../../lib/hex.ts';
import { REVERTED } from '../../settler.ts';
import { isBanned } from '../../usdc/payer-reads.ts';
import { startExpiry, startSorting } from './doubts.ts';
import type { Turn } from './events.ts';
import { type Flight, newest } from './flight.ts';
import { splitGroup } from './grouping.ts';
import type { Job } from './job.ts';
import { markSent, note } from './notes.ts';
import { doubtLost, takeOperation, tryOperation } from './operations.ts';
import { judgeTrial, learnPayers, type Plan, type Prepared, planRound, type RoundLimits, type Trial } from './plan.ts';
import { endRound, finish, RETRY_MS, requeue, requeueLater } from './verdicts.ts';

/** Jobs that one round takes from the queue at the most. */
const ROUND = 1000;
/** In milliseconds. A transaction that is sent now is mined in one of the next two blocks. */
const MINED_WITHIN_MS = 1000;
const TOO_CHEAP = /underpriced/i;
/** Nodes' error messages for a transaction that they already have: Ethereum's clients, and the embedded network. */
const HAS_IT = /already (known|imported|exists)/i;
/** Too expensive for the relayer's balance, or too large for the pool or a block. Half of the batch may be accepted. */
const TOO_MUCH = /insufficient (funds|balance)|oversized|exceeds|too (large|big|high)/i;

/** Opens the batch window, so that jobs share a transaction. With nothing in flight, a job waits only for the event loop's next turn. */
export function openWindow({ state, now, effects }: Turn): void {
  const endMs = state.flights.size() === 0 ? 0 : (state.queue[0]?.queuedMs ?? 0) + state.settings.batchWindowMs;
  state.sender = 'window';
  effects.push({ kind: 'wait', ms: Math.max(0, endMs - now.nowMs), timer: { name: 'window' } });
}

/** Takes payments or one operation from the queues. Asks for the nonce where it is unknown, then for the prices. */
export function startRound(turn: Turn): void {
  const { state, effects } = turn;
  const operation = takeOperation(turn);
  const jobs = operation ? [] : state.queue.splice(0, ROUND).filter((job) => !job.ended);
  state.sender = operation || jobs.length > 0 ? 'round' : 'idle';
  if (state.sender === 'idle') return;
  state.round = { jobs, operation, rest: { doubtful: [], again: [] }, examined: [], next: 0 };
  effects.push({ kind: state.nonces.known() ? 'readFees' : 'countTransactions', for: 'round' });
}

/** Ends a round that failed, because the chain could not be read or the ledger not written. Nothing of this round was sent. */
export function giveUpRound({ state, effects }: Turn, error: unknown): void {
  const { jobs = [], operation = null } = state.round ?? {};
  const waiting = jobs.length + state.queue.length;
  effects.push({ kind: 'warn', detail: { err: error, waiting }, message: 'settling waits' });
  state.queue.unshift(...jobs.filter((job) => !job.ended));
  if (operation && !operation.ended) state.operations.unshift(operation);
  state.sender = 'pause';
  effects.push({ kind: 'wait', ms: RETRY_MS, timer: { name: 'pause' } });
}

/** Decides what must be simulated before it is sent. The nonce and the prices are known now. */
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

/** Sets aside jobs that are expired or will be when they could be mined. Sending them could only cost gas. */
function takeOutExpired(turn: Turn, jobs: readonly Job[]): Job[] {
  const lastSecond = BigInt(Math.floor((turn.now.nowMs + MINED_WITHIN_MS) / 1000));
  const expired = jobs.filter((job) => job.intent.authorization.validBefore <= lastSecond);
  startExpiry(turn, expired);
  return jobs.filter((job) => !expired.includes(job));
}

/** Fails a banned payer's payments that were never broadcast. Each would waste as much gas. The payer may present them again. */
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

/** Sends the transactions that are on disk. */
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

/**
 * Takes the nodes' answers. A flight that no node accepted frees its nonce. Its receipt is asked for first, because a nonce that a node calls used
 * may be used by this very transaction.
 */
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

/** Reads why a node does not take a transaction. Null when it has it, also where it had it before. */
export function refusalOf(outcome: RpcOutcome | undefined): string | null {
  if (!outcome || 'result' in outcome || HAS_IT.test(outcome.error.message)) return null;
  return outcome.error.message;
}

/** Ends refused flights without a receipt, and sorts their jobs. */
export function closeRefused(turn: Turn, refused: readonly Flight[]): void {
  const left = refused.filter(turn.state.flights.has);
  for (const flight of left) turn.state.flights.close(flight);
  doubtLost(turn, left);
  startSorting(
    turn,
    left.flatMap((flight) => newest(flight).jobs),
    'refused',
  );
}

/** Goes on after the groups were sent: jobs that were set aside are queued again, or examined before the next round. */
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
