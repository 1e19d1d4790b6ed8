import type { RpcOutcome } from '../../../chain/rpc/wire.ts';
import type { OperationDone, OperationFailed } from '../../operation.ts';
import type { Receipt } from '../../usdc/evidence.ts';
import { isRevert } from '../../usdc/payer-reads.ts';
import type { Turn } from './events.ts';
import { type Flight, newest } from './flight.ts';
import type { Doubt, OperationJob } from './job.ts';
import { UNRESOLVED_MS } from './judge.ts';
import { note } from './notes.ts';
import type { State } from './state.ts';
import { endRound, finishOperation, isPending, RETRY_MS } from './verdicts.ts';

/** In milliseconds. An operation that is queued for longer goes before waiting payments. A steady stream of payments would hold it up for ever. */
const OVERDUE_MS = 5000;
const TRANSACTION_REVERTED = 'the transaction reverted';
const NO_EVENT = 'the transaction was mined without the event';

/** Whether an operation may go to the sender. One is in flight at a time, so that operations never fill a block before payments. */
export function mayOperate({ operations, flights }: Pick<State, 'operations' | 'flights'>): boolean {
  return operations.length > 0 && !flights.all().some((flight) => newest(flight).operationJob !== null);
}

/** Takes the next operation from its queue; null when there is none or payments go first. */
export function takeOperation({ state, now }: Turn): OperationJob | null {
  const [next] = state.operations;
  if (!next || !mayOperate(state)) return null;
  if (state.queue.length > 0 && now.nowMs - next.queuedMs <= OVERDUE_MS) return null;
  state.operations.shift();
  return next;
}

/** Asks for a simulation. An operation that only a mined transaction can end is sent without one. */
export function tryOperation(turn: Turn, job: OperationJob): void {
  if (job.mustSend) launch(turn, job);
  else turn.effects.push({ kind: 'tryOperation', job, gasPrice: turn.now.prices.gasPrice });
}

/** Takes the simulation's answer; null when the chain gave none. An operation that no node has seen fails when the contract refuses it. */
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
  else doubt(turn, job, { after: 'refused', reason });
}

function launch(turn: Turn, job: OperationJob): void {
  note(turn, [turn.state.flights.openOperation(job, turn.now.prices)], 'round');
}

/** Ends an operation by the event in its mined transaction. Without the event, the chain is asked whether another transaction did the same. */
export function endMined(turn: Turn, job: OperationJob, receipt: Receipt): void {
  const done = job.operation.readReceipt(receipt);
  if (done) finishOperation(turn, job, done);
  else doubt(turn, job, { after: 'mined', reason: receipt.status === '0x1' ? NO_EVENT : TRANSACTION_REVERTED });
}

/** Looks up the operations of flights that were closed without a receipt. */
export function doubtLost(turn: Turn, flights: readonly Flight[]): void {
  for (const flight of flights) {
    const { operationJob } = newest(flight);
    if (operationJob) doubt(turn, operationJob, { after: 'lost' });
  }
}

function doubt({ effects }: Turn, job: OperationJob, why: Doubt): void {
  if (!job.ended) effects.push({ kind: 'lookUpOperation', job, for: why });
}

/**
 * Takes the chain's answer about an operation:
 * 1. The chain shows its end: ended so, and never sent again.
 * 2. The chain cannot be read: the operation waits and is looked up again.
 * 3. Its flight was given back: queued.
 * 4. Refused or mined in vain, and another transaction with it may still be mined: sent again, whatever a simulation says, until none can.
 * 5. Otherwise failed.
 */
export function takeOperationFound(
  turn: Turn,
  job: OperationJob,
  why: Doubt,
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

/** Goes on after a pause: looks the operation up again, or queues it. */
export function resume(turn: Turn, job: OperationJob, why: Doubt | null): void {
  if (job.ended || turn.state.stopping) return;
  if (why) doubt(turn, job, why);
  else queue(turn, job);
}

function queue({ state, now }: Turn, job: OperationJob): void {
  job.queuedMs = now.nowMs;
  state.operations.push(job);
}

/** Lets an operation wait while the chain cannot be read. After UNRESOLVED_MS it ends as unknown. */
function hold(turn: Turn, job: OperationJob, why: Doubt | null): void {
  job.unresolvedMs ??= turn.now.nowMs;
  if (turn.now.nowMs - job.unresolvedMs > UNRESOLVED_MS) return void finishOperation(turn, job, { kind: 'unknown' });
  turn.effects.push({ kind: 'wait', ms: RETRY_MS, timer: { name: 'operation', job, why } });
}
