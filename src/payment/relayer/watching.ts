import type { RpcOutcome } from '../../chain/rpc/wire.ts';
import type { OperationDone, OperationFailed } from '../settler.ts';
import { readReceipt, type TransactionReceipt } from '../usdc/evidence.ts';
import { isRevert } from '../usdc/payer-reads.ts';
import type { Procedure, Sent, Sorting, State, Turn } from './state.ts';
import {
  costOf,
  type Flight,
  type Job,
  jobsOf,
  loadOf,
  newest,
  type OperationJob,
  railCostsOf,
  type Transaction,
  type Unconfirmed,
} from './transactions.ts';
import {
  apply,
  endRound,
  finish,
  finishOperation,
  isPending,
  judgeReceipt,
  RETRY_MS,
  type Ruling,
  reopen,
  startSorting,
  UNRESOLVED_MS,
} from './verdicts.ts';

// What becomes of flights and of operations. A late flight is looked up, given back, resent or replaced. Each
// transaction is noted on disk before it is sent; from then on it counts as sent, and its authorizations as public.

/** Milliseconds: six blocks on Arc. A transaction without a receipt is then looked up and sent to every provider. */
const LATE_MS = 3000;

/** Asks for receipts at every head and at least at every poll. */
export function startWatch({ state, effects }: Turn): void {
  state.watch = 'waiting';
  effects.push({ kind: 'listen' }, { kind: 'wait', ms: state.settings.pollMs, timer: { name: 'poll' } });
}

/** A head ends the wait. During a look, it makes the next look come at once. */
export function takeHead({ state, effects }: Turn): void {
  if (state.watch === 'waiting') effects.push({ kind: 'wake', timer: 'poll' });
  else state.headSeen = true;
}

export function look(turn: Turn): void {
  const { state } = turn;
  if (state.stopping) return void endWatch(turn);
  state.watch = 'looking';
  state.headSeen = false;
  turn.effects.push({ kind: 'fetchReceipts', sent: sentIn(state.flights.all()), for: 'look' });
}

/** All transactions of these flights: any of them may be the mined one. */
export function sentIn(flights: readonly Flight[]): Sent[] {
  return flights.flatMap((flight) => flight.transactions.map((transaction) => ({ flight, transaction })));
}

function endWatch({ state, effects }: Turn): void {
  state.watch = 'idle';
  effects.push({ kind: 'stopListening' });
}

function endLook(turn: Turn): void {
  const { state, effects } = turn;
  state.resend = null;
  if (state.flights.size() === 0 || state.stopping) return void endWatch(turn);
  if (state.headSeen) return void look(turn);
  state.watch = 'waiting';
  effects.push({ kind: 'wait', ms: state.settings.pollMs, timer: { name: 'poll' } });
}

export function giveUpLook(turn: Turn, error: unknown): void {
  const inFlight = turn.state.flights.size();
  turn.effects.push({ kind: 'warn', detail: { err: error, inFlight }, message: 'receipts unread' });
  endLook(turn);
}

/** Ends flights that have a receipt. Their nonce is used, so nothing else under it can be mined. */
export function takeReceipts(turn: Turn, sent: readonly Sent[], outcomes: readonly RpcOutcome[]): void {
  for (const [index, { flight, transaction }] of sent.entries()) {
    const outcome = outcomes[index];
    if (!outcome || !('result' in outcome) || outcome.result === null || !turn.state.flights.has(flight)) continue;
    const receipt = readReceipt(outcome.result, transaction.hash);
    if (receipt) endFlight(turn, flight, transaction, receipt);
    else
      turn.effects.push({
        kind: 'warn',
        detail: { transaction: transaction.hash },
        message: 'a receipt was not understood',
      });
  }
}

function endFlight(turn: Turn, flight: Flight, transaction: Transaction, receipt: TransactionReceipt): void {
  const { state, effects } = turn;
  const { jobs, operationJob } = transaction;
  state.flights.close(flight);
  state.nonces.passed(flight.nonce, Number(receipt.blockNumber));
  if (operationJob) endMined(turn, operationJob, receipt);
  const judged = judgeReceipt(transaction, receipt, state.settings.usdc);
  const unpaid = apply(turn, judged.rulings);
  if (jobs.length > 1 && judged.paid === jobs.length) state.gas.learn(BigInt(receipt.gasUsed), loadOf(jobs));
  if (jobs.length > 1 && judged.paid < jobs.length) {
    const detail = { unpaid: unpaid.length, batch: jobs.length, transaction: receipt.transactionHash };
    effects.push({ kind: 'warn', detail, message: 'a batch left some unpaid' });
  }
  if (judged.gasExhausted) state.gas.failedBatch(jobs.length);
  if (unpaid.length > 0) startSorting(turn, unpaid, 'reopen');
  const cost = costOf(transaction, receipt, judged.paid);
  effects.push({ kind: 'report', cost, rails: railCostsOf(transaction, cost, settledIn(judged.rulings)) });
  // Nothing is in flight any more, so the queue does not wait for others.
  if (state.sender === 'window' && state.flights.size() === 0) effects.push({ kind: 'wake', timer: 'window' });
  const others = jobsOf(flight).filter((job) => !jobs.includes(job));
  if (others.length > 0) startSorting(turn, others, 'reopen');
}

function settledIn(rulings: readonly Ruling[]): ReadonlySet<Job> {
  const ended = rulings.filter(({ verdict }) => verdict.kind === 'end' && verdict.outcome.kind === 'settled');
  return new Set(ended.map(({ job }) => job));
}

/**
 * A late transaction may be dropped, its nonce used or behind a gap, or the price higher. A used nonce: the receipt is
 * asked for again. Used by another, or behind a gap: its jobs are queued again. Any other goes to every provider, first
 * unchanged; replaced once it is late again or below the base fee.
 */
export function resendLate(turn: Turn): void {
  const { state, now, effects } = turn;
  const late = state.flights.all().filter(({ sentMs }) => sentMs !== null && now.nowMs - sentMs > LATE_MS);
  if (late.length === 0) return void endLook(turn);
  state.resend = { late, mined: 0, stuck: [], next: 0, replaced: [], lost: 0 };
  effects.push({ kind: 'countTransactions', for: 'resend' });
}

export function fetchPast(turn: Turn): void {
  const { late, mined } = turn.state.resend ?? { late: [], mined: 0 };
  const past = late.filter(({ nonce }) => nonce < mined);
  if (past.length > 0) turn.effects.push({ kind: 'fetchReceipts', sent: sentIn(past), for: 'late' });
  else giveBackLost(turn);
}

export function giveBackLost(turn: Turn): void {
  const { flights, nonces, resend } = turn.state;
  if (!resend) return;
  const waiting = resend.late.filter(flights.has);
  // The sender has forgotten the nonce since, so gaps cannot be found. The next look knows it.
  if (!nonces.known() && waiting.some(({ nonce }) => nonce >= resend.mined))
    return void giveUpLook(turn, new Error('the chain was not asked for the nonce yet'));
  const lost = waiting.filter((flight) => flight.nonce < resend.mined || flights.isBehindGap(flight));
  for (const flight of lost) flights.close(flight);
  lookUpLost(turn, lost);
  resend.stuck = waiting.filter((flight) => !lost.includes(flight));
  resend.lost = lost.length;
  startSorting(turn, lost.flatMap(jobsOf), 'lost');
}

/** One stuck flight after the other: does the chain show its jobs by now? */
function replaceStuck(turn: Turn): void {
  const { resend } = turn.state;
  if (!resend) return;
  const flight = resend.stuck[resend.next++];
  if (flight) {
    const helps = flight.resends > 0 || !turn.now.prices.covers(newest(flight).price);
    flight.resends++;
    startSorting(turn, jobsOf(flight), { replace: flight, helps });
  } else if (resend.replaced.length > 0) note(turn, resend.replaced, 'resend');
  else resendNoted(turn, []);
}

/** Signs again where that helps, for jobs that still wait. Without any it goes unchanged, as its nonce must be used. */
export function replace(turn: Turn, flight: Flight, helps: boolean, { unused, toLookUp }: Sorting): void {
  const { flights, resend } = turn.state;
  const open = [...unused, ...toLookUp].filter((job) => !job.ended);
  const isOpen = open.length > 0 || newest(flight).operationJob?.ended === false;
  if (helps && isOpen && flights.replace(flight, open, turn.now.prices)) resend?.replaced.push(flight);
  replaceStuck(turn);
}

/** Sends the replacements, which are on disk. What was sent before may be sent again at any time. */
export function resendNoted(turn: Turn, noted: readonly Flight[]): void {
  const { flights, resend } = turn.state;
  if (!resend) return;
  const { late, stuck, replaced, lost } = resend;
  const again = [...noted, ...stuck.filter((flight) => !replaced.includes(flight))].filter(flights.has);
  const detail = { late: late.length, givenBack: lost, raised: noted.length };
  turn.effects.push({ kind: 'warn', detail, message: 'settlements are late' });
  if (again.length > 0) turn.effects.push({ kind: 'resendEverywhere', raws: markSent(turn, again) });
  endLook(turn);
}

export function takeLost(turn: Turn, sorting: Sorting): void {
  reopen(turn, sorting);
  replaceStuck(turn);
}

/** Asks for the newest transactions to be written to disk. They must not be sent before. */
export function note({ effects }: Turn, flights: readonly Flight[], procedure: Procedure): void {
  effects.push({ kind: 'note', flights, for: procedure });
}

/** The flights, if all jobs and operations await their end. Else null: signed without the others, and noted again. */
export function takeNoted(
  turn: Turn,
  flights: readonly Flight[],
  procedure: Procedure,
  waiting: ReadonlySet<string>,
): readonly Flight[] | null {
  const changed = flights.filter((flight) => idsOf(flight).some((id) => !waiting.has(id)));
  if (changed.length === 0) return flights;
  const empty = changed.filter((flight) => !leaveOut(turn, flight, waiting));
  const going = flights.filter((flight) => !empty.includes(flight));
  note(turn, going, procedure);
  return null;
}

function idsOf(flight: Flight): string[] {
  const { jobs, operationJob } = newest(flight);
  return [...jobs.map(({ intent }) => intent.id), ...(operationJob ? [operationJob.operation.id] : [])];
}

/** Signs a flight without the jobs that no longer wait. False when none is left and the transaction is removed. */
function leaveOut(turn: Turn, flight: Flight, waiting: ReadonlySet<string>): boolean {
  const { flights } = turn.state;
  const { jobs, operationJob } = newest(flight);
  if (operationJob) finishOperation(turn, operationJob, { kind: 'unknown' });
  const left = jobs.filter(({ intent }) => waiting.has(intent.id));
  for (const job of jobs) if (!left.includes(job)) finish(turn, job, { kind: 'unknown' });
  if (left.length > 0) flights.replaceUnsent(flight, left);
  else flights.dropUnsent(flight);
  return left.length > 0;
}

/** Removes the newest transactions, which could not be written to disk. */
export function dropNotes({ state }: Turn, flights: readonly Flight[]): void {
  for (const flight of flights) state.flights.dropUnsent(flight);
}

/** Marks as sent. A third party may hold the authorizations from now on. Returns the raw transactions to send. */
export function markSent({ now }: Turn, flights: readonly Flight[]): string[] {
  for (const flight of flights) {
    flight.sentMs = now.nowMs;
    const { jobs, operationJob } = newest(flight);
    for (const job of jobs) job.nonces.add(flight.nonce);
    operationJob?.nonces.add(flight.nonce);
  }
  return flights.map((flight) => newest(flight).raw);
}

/** Milliseconds. An operation that is queued for longer goes before payments, which could hold it up for ever. */
const OVERDUE_MS = 5000;
const TRANSACTION_REVERTED = 'the transaction reverted';
const NO_EVENT = 'the transaction was mined without the event';

/** Whether an operation may go. One is in flight at a time, so that operations never fill a block before payments. */
export function mayOperate({ operations, flights }: Pick<State, 'operations' | 'flights'>): boolean {
  return operations.length > 0 && !flights.all().some((flight) => newest(flight).operationJob !== null);
}

/** The next operation; null when there is none or payments go first. */
export function takeOperation({ state, now }: Turn): OperationJob | null {
  const [next] = state.operations;
  if (!next || !mayOperate(state)) return null;
  if (state.queue.length > 0 && now.nowMs - next.queuedMs <= OVERDUE_MS) return null;
  state.operations.shift();
  return next;
}

/** Simulates. What only a mined transaction can end is sent without that. */
export function tryOperation(turn: Turn, job: OperationJob): void {
  if (job.mustSend) launch(turn, job);
  else turn.effects.push({ kind: 'tryOperation', job, gasPrice: turn.now.prices.gasPrice });
}

/** Null: the chain gave no answer. An operation that no node has seen fails when the contract refuses it. */
export function takeOperationTrial(turn: Turn, job: OperationJob, outcome: RpcOutcome | null): void {
  if (outcome && 'result' in outcome) {
    job.unresolvedMs = null;
    return void launch(turn, job);
  }
  endRound(turn);
  if (!outcome || !isRevert(outcome.error)) return void hold(turn, job, null);
  const reason = outcome.error.message;
  const isUnsent = job.nonces.size === 0 && !job.operation.broadcast;
  if (isUnsent) finishOperation(turn, job, { kind: 'failed', reason });
  else lookUpOperation(turn, job, { after: 'refused', reason });
}

function launch(turn: Turn, job: OperationJob): void {
  note(turn, [turn.state.flights.openOperation(job, turn.now.prices)], 'round');
}

/** Ends an operation by its event. Without it, the chain is asked whether another transaction did the same. */
export function endMined(turn: Turn, job: OperationJob, receipt: TransactionReceipt): void {
  const done = job.operation.readReceipt(receipt);
  if (done) finishOperation(turn, job, done);
  else
    lookUpOperation(turn, job, { after: 'mined', reason: receipt.status === '0x1' ? NO_EVENT : TRANSACTION_REVERTED });
}

export function lookUpLost(turn: Turn, flights: readonly Flight[]): void {
  for (const flight of flights) {
    const { operationJob } = newest(flight);
    if (operationJob) lookUpOperation(turn, operationJob, { after: 'lost' });
  }
}

function lookUpOperation({ effects }: Turn, job: OperationJob, why: Unconfirmed): void {
  if (!job.ended) effects.push({ kind: 'lookUpOperation', job, for: why });
}

/**
 * A shown end counts. Unreadable: looked up again. No end: queued when its flight was given back; refused or mined in
 * vain it is sent again, whatever a simulation says, while another may be mined; else failed.
 */
export function takeOperationFound(
  turn: Turn,
  job: OperationJob,
  why: Unconfirmed,
  found: OperationDone | OperationFailed | null | 'unreadable',
): void {
  if (job.ended) return;
  if (found === 'unreadable') return void hold(turn, job, why);
  job.unresolvedMs = null;
  if (found) return void finishOperation(turn, job, found);
  const isOut = isPending(turn, job) || (why.after === 'refused' && job.operation.broadcast);
  if (why.after !== 'lost' && !isOut) return void finishOperation(turn, job, { kind: 'failed', reason: why.reason });
  if (why.after !== 'lost') job.mustSend = true;
  queue(turn, job);
}

/** After a pause: looks the operation up again, or queues it. */
export function resume(turn: Turn, job: OperationJob, why: Unconfirmed | null): void {
  if (job.ended || turn.state.stopping) return;
  if (why) lookUpOperation(turn, job, why);
  else queue(turn, job);
}

function queue({ state, now }: Turn, job: OperationJob): void {
  job.queuedMs = now.nowMs;
  state.operations.push(job);
}

/** Waits while the chain cannot be read. After UNRESOLVED_MS the operation ends as unknown. */
function hold(turn: Turn, job: OperationJob, why: Unconfirmed | null): void {
  job.unresolvedMs ??= turn.now.nowMs;
  if (turn.now.nowMs - job.unresolvedMs > UNRESOLVED_MS) return void finishOperation(turn, job, { kind: 'unknown' });
  turn.effects.push({ kind: 'wait', ms: RETRY_MS, timer: { name: 'operation', job, why } });
}
