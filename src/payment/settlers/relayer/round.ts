import type { RpcOutcome } from '../../../chain/rpc/client.ts';
import { bytesToHex } from '../../../lib/hex.ts';
import { isBanned } from '../../evm/payer-bans.ts';
import { REVERTED } from '../../settler.ts';
import { startExpiry, startSorting } from './doubts.ts';
import type { Turn } from './events.ts';
import { endRound } from './examination.ts';
import { type Flight, newest } from './flight.ts';
import { halve } from './grouping.ts';
import type { Job } from './job.ts';
import { markSent, note } from './notes.ts';
import { judgeTrial, learnPayers, type Plan, type Prepared, planRound, type Room, type Trial } from './plan.ts';
import { finish, RETRY_MS, requeue, requeueLater } from './turn.ts';

/** At the most taken from the queue in one round. */
const ROUND = 1000;
/** A transaction that is sent now is in one of the next two blocks. */
const MINED_WITHIN_MS = 1000;
const TOO_CHEAP = /underpriced/i;
/** What nodes say to a transaction that they have: in Ethereum's words, and in the embedded network's. */
const HAS_IT = /already (known|imported|exists)/i;
/** Too dear for the relayer's balance, or too large for the pool or a block: half of it may do. */
const TOO_MUCH = /insufficient (funds|balance)|oversized|exceeds|too (large|big|high)/i;

/** Lets what comes at the same time come together; with nothing in flight no job waits for others beyond the event loop's next turn. */
export function openWindow({ state, now, effects }: Turn): void {
  const endMs = state.flights.size() === 0 ? 0 : (state.queue[0]?.queuedMs ?? 0) + state.settings.gatherMs;
  state.sender = 'window';
  effects.push({ kind: 'wait', ms: Math.max(0, endMs - now.nowMs), timer: { name: 'window' } });
}

/** Takes from the queue. The nonce is asked for where it is not known, then the prices. */
export function startRound({ state, effects }: Turn): void {
  const jobs = state.queue.splice(0, ROUND).filter((job) => !job.ended);
  state.sender = jobs.length > 0 ? 'round' : 'idle';
  if (jobs.length === 0) return;
  state.round = { jobs, rest: { doubtful: [], again: [] }, examined: [], next: 0 };
  effects.push({ kind: state.nonces.known() ? 'readFees' : 'countTransactions', for: 'round' });
}

/** The chain could not be read, or the ledger could not be written: nothing of this round was sent. */
export function giveUpRound({ state, effects }: Turn, error: unknown): void {
  const jobs = state.round?.jobs ?? [];
  const waiting = jobs.length + state.queue.length;
  effects.push({ kind: 'warn', detail: { err: error, waiting }, message: 'settling waits' });
  state.queue.unshift(...jobs.filter((job) => !job.ended));
  state.sender = 'pause';
  effects.push({ kind: 'wait', ms: RETRY_MS, timer: { name: 'pause' } });
}

/** With the nonce and the prices known: decides what must be tried out before it is sent. */
export function prepareRound(turn: Turn): void {
  const { state, now, effects } = turn;
  const { blockGas, gasPrice } = now.prices;
  const most = (waiting: number) => state.gas.most(blockGas, waiting);
  const room: Room = { gas: state.gas.ceiling(blockGas), gasPrice, isCareful: now.isCareful, most };
  const plan = planRound(takeOutExpired(turn, giveBackBanned(turn, state.round?.jobs ?? [])), room);
  if (plan.free.length > 0) effects.push({ kind: 'tryOut', plan });
  else launch(turn, judgeTrial(plan, { readings: new Map(), simulated: [] }));
}

/** What has run out, or will have when it is mined, is not sent: it could only cost gas. */
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

/** Sends what is on disk. */
export function sendNoted(turn: Turn, flights: readonly Flight[]): void {
  if (flights.length === 0) return void examineRest(turn);
  turn.effects.push({ kind: 'send', flights, raws: markSent(turn, flights) });
}

/** One without an answer may have arrived: it stays in flight until it is late. */
export function sendUnanswered(turn: Turn, flights: readonly Flight[], error: unknown): void {
  const detail = { err: error, transactions: flights.length };
  turn.effects.push({ kind: 'warn', detail, message: 'broadcast unanswered' });
  examineRest(turn);
}

/** Flights that no node took free their nonces; but what a node calls used may be used by the very same, so their receipts are asked for. */
export function takeSent(turn: Turn, flights: readonly Flight[], outcomes: readonly RpcOutcome[]): void {
  const { state, effects } = turn;
  const refused: Flight[] = [];
  for (const [index, flight] of flights.entries()) {
    const reason = refusalOf(outcomes[index]);
    if (reason === null) continue;
    const { jobs } = newest(flight);
    refused.push(flight);
    if (TOO_CHEAP.test(reason)) state.flights.outbid(flight);
    if (TOO_MUCH.test(reason)) halve(jobs);
    const detail = { reason, nonce: flight.nonce, payments: jobs.length };
    effects.push({ kind: 'warn', detail, message: 'broadcast refused' });
  }
  if (refused.length === 0) return void examineRest(turn);
  // The chain may have moved without us: it is asked for the nonce again.
  state.nonces.forget();
  effects.push({ kind: 'wait', ms: RETRY_MS, timer: { name: 'refused', flights: refused } });
}

/** A node's no, other than that it has the transaction already. */
function refusalOf(outcome: RpcOutcome | undefined): string | null {
  if (!outcome || 'result' in outcome || HAS_IT.test(outcome.error.message)) return null;
  return outcome.error.message;
}

/** Gives back what was refused and has no receipt. */
export function closeRefused(turn: Turn, refused: readonly Flight[]): void {
  const left = refused.filter(turn.state.flights.has);
  for (const flight of left) turn.state.flights.close(flight);
  startSorting(
    turn,
    left.flatMap((flight) => newest(flight).jobs),
    'refused',
  );
}

/** The groups are on their way: what was set aside is queued again, or examined before the next round. */
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
