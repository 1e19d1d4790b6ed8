import type { RpcOutcome } from '../../../chain/rpc/wire.ts';
import { type Receipt, readReceipt } from '../../usdc/evidence.ts';
import { reopen, startSorting } from './doubts.ts';
import type { Sent, Turn } from './events.ts';
import { type Flight, jobsOf, loadOf, newest, type Transaction } from './flight.ts';
import type { Job } from './job.ts';
import { judgeReceipt, type Ruling } from './judge.ts';
import { costOf, railCostsOf } from './mined-cost.ts';
import { markSent, note } from './notes.ts';
import { doubtLost, endMined } from './operations.ts';
import type { Sorting } from './state.ts';
import { apply } from './verdicts.ts';

/** In milliseconds: six blocks on Arc. A transaction that has no receipt after that is looked up and sent to every provider. */
const LATE_MS = 3000;

/** Starts to ask for the receipts of the flights, at every reported head and at least at every poll. */
export function startWatch({ state, effects }: Turn): void {
  state.watch = 'waiting';
  effects.push({ kind: 'listen' }, { kind: 'wait', ms: state.settings.pollMs, timer: { name: 'poll' } });
}

/** A new block ends the wait. During a look, it makes the next look come at once. */
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

/** Every transaction of these flights, because any of them may be the one that was mined. */
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

/** Ends flights that have a receipt. Their nonce is used, so no other transaction under it can be mined. */
export function takeReceipts(turn: Turn, sent: readonly Sent[], outcomes: readonly RpcOutcome[]): void {
  for (const [index, { flight, transaction }] of sent.entries()) {
    const outcome = outcomes[index];
    if (!outcome || !('result' in outcome) || outcome.result === null || !turn.state.flights.has(flight)) continue;
    const receipt = readReceipt(outcome.result, transaction.hash);
    if (receipt) endFlight(turn, flight, transaction, receipt);
    else
      turn.effects.push({
        ...{ kind: 'warn', detail: { transaction: transaction.hash }, message: 'a receipt was not understood' },
      });
  }
}

function endFlight(turn: Turn, flight: Flight, transaction: Transaction, receipt: Receipt): void {
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
  // Nothing is in flight any more, so the queue does not wait longer for other jobs.
  if (state.sender === 'window' && state.flights.size() === 0) effects.push({ kind: 'wake', timer: 'window' });
  const others = jobsOf(flight).filter((job) => !jobs.includes(job));
  if (others.length > 0) startSorting(turn, others, 'reopen');
}

function settledIn(rulings: readonly Ruling[]): ReadonlySet<Job> {
  const ended = rulings.filter(({ verdict }) => verdict.kind === 'end' && verdict.outcome.kind === 'settled');
  return new Set(ended.map(({ job }) => job));
}

/**
 * Works on late flights. The cause may be a dropped or withheld transaction, another transaction under the nonce, a lower gap, or a higher price:
 * 1. A flight whose nonce the chain has used: its receipt is asked for again, because it may have been mined since the last look.
 * 2. A flight whose nonce another transaction used, or that waits behind a gap: its jobs that the chain does not show go back to the queue.
 * 3. Any other flight goes to every provider. The first time it goes unchanged. It is replaced at a higher fee when it does not cover the base fee or
 *    is late again.
 */
export function resendLate(turn: Turn): void {
  const { state, now, effects } = turn;
  const late = state.flights.all().filter(({ sentMs }) => sentMs !== null && now.nowMs - sentMs > LATE_MS);
  if (late.length === 0) return void endLook(turn);
  state.resend = { late, mined: 0, stuck: [], next: 0, replaced: [], lost: 0 };
  effects.push({ kind: 'countTransactions', for: 'resend' });
}

/** Goes on once the chain's nonce and fresh prices are known. */
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
  // The sender has forgotten the nonce since, so gaps cannot be found. The next look knows the nonce.
  if (!nonces.known() && waiting.some(({ nonce }) => nonce >= resend.mined))
    return void giveUpLook(turn, new Error('the chain was not asked for the nonce yet'));
  const lost = waiting.filter((flight) => flight.nonce < resend.mined || flights.isBehindGap(flight));
  for (const flight of lost) flights.close(flight);
  doubtLost(turn, lost);
  resend.stuck = waiting.filter((flight) => !lost.includes(flight));
  resend.lost = lost.length;
  startSorting(turn, lost.flatMap(jobsOf), 'lost');
}

/** Works on one stuck flight after the other: looks up whether the chain shows its jobs by now. */
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

/**
 * Signs a late flight again where that helps, for those of its jobs that still wait. When no job waits, it is sent unchanged, because its nonce must
 * be used.
 */
export function replace(turn: Turn, flight: Flight, helps: boolean, { unused, toLookUp }: Sorting): void {
  const { flights, resend } = turn.state;
  const open = [...unused, ...toLookUp].filter((job) => !job.ended);
  const isOpen = open.length > 0 || newest(flight).operationJob?.ended === false;
  if (helps && isOpen && flights.replace(flight, open, turn.now.prices)) resend?.replaced.push(flight);
  replaceStuck(turn);
}

/** Sends the replacements, which are on disk now. Transactions that were sent before may be sent again at any time. */
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

/** Queues the jobs of lost flights again, then continues with the stuck flights. */
export function takeLost(turn: Turn, sorting: Sorting): void {
  reopen(turn, sorting);
  replaceStuck(turn);
}
