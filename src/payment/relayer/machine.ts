import type { Found } from '../settler.ts';
import {
  closeRefused,
  endExamined,
  examine,
  examineRest,
  giveUpRound,
  openWindow,
  prepareRound,
  sendNoted,
  sendUnanswered,
  startRound,
  takeSent,
  takeTrial,
} from './sending.ts';
import type { Ask, AskOf, Effect, Event, Moment, Reading, Sorting, State, Turn } from './state.ts';
import type { Job, OperationJob } from './transactions.ts';
import {
  banPayer,
  endMinedAlone,
  endRound,
  finish,
  finishOperation,
  reopen,
  requeue,
  sortByLogs,
  sortByReadings,
  suspectByBalance,
  suspectByCode,
} from './verdicts.ts';
import {
  dropNotes,
  fetchPast,
  giveBackLost,
  giveUpLook,
  look,
  mayOperate,
  replace,
  resendLate,
  resendNoted,
  resume,
  sentIn,
  startWatch,
  takeHead,
  takeLost,
  takeNoted,
  takeOperationFound,
  takeOperationTrial,
  takeReceipts,
} from './watching.ts';

// The relayer's only decider: the only writer of its state, without clock and promise. Equal events at equal moments
// give equal effects. `step` hands the event to its part (sending.ts, watching.ts, verdicts.ts), does what follows from
// the state alone, and returns the effects to the driver (relayer.ts). README.md lists the states of a job.

export function step(state: State, event: Event, now: Moment): Effect[] {
  const turn: Turn = { state, now, effects: [] };
  handle(turn, event);
  goOn(turn);
  return turn.effects;
}

/** Sends a queue and watches flights. Once the sender and the watch have stopped, open jobs end as unknown. */
function goOn(turn: Turn): void {
  const { state } = turn;
  const hasWork = state.queue.length > 0 || mayOperate(state);
  if (state.sender === 'idle' && hasWork && !state.stopping) openWindow(turn);
  if (state.watch === 'idle' && state.flights.size() > 0 && !state.stopping) startWatch(turn);
  if (!hasStopped(state)) return;
  for (const job of state.open) finish(turn, job, { kind: 'unknown' });
  for (const job of state.openOperations) finishOperation(turn, job, { kind: 'unknown' });
}

/** Whether the service is stopping and no work runs. Then nothing more is noted or sent. */
export function hasStopped({ stopping, sender, watch }: State): boolean {
  return stopping && sender === 'idle' && watch === 'idle';
}

function handle(turn: Turn, event: Event): void {
  const { state } = turn;
  switch (event.kind) {
    case 'submitted':
      return void submit(turn, event.jobs);
    case 'operated':
      return void operate(turn, event.job);
    case 'head':
      return void takeHead(turn);
    case 'stopped':
      state.stopping = true;
      return;
    case 'failed':
      return void takeFailure(turn, event.effect, event.error);
    case 'wait':
      return void takeWaited(turn, event.effect);
    case 'countTransactions':
      return void takeCount(turn, event.effect, event.answer);
    case 'readFees':
      return void (event.effect.for === 'round' ? prepareRound : fetchPast)(turn);
    case 'tryOut':
      return void takeTrial(turn, event.effect.plan, event.answer);
    case 'tryOperation':
      return void takeOperationTrial(turn, event.effect.job, event.answer);
    case 'lookUpOperation':
      return void takeOperationFound(turn, event.effect.job, event.effect.for, event.answer);
    case 'note':
      return void takeNote(turn, event.effect, event.answer);
    case 'send':
      return void takeSent(turn, event.effect.flights, event.answer);
    case 'fetchReceipts':
      takeReceipts(turn, event.effect.sent, event.answer);
      return void afterReceipts(turn, event.effect);
    case 'readPayers':
      return void takeReadings(turn, event.effect, event.answer);
    case 'lookUp':
      return void takeFound(turn, event.effect, event.answer);
    case 'readBalance':
      return void suspectByBalance(turn, event.effect.job, event.answer);
    case 'tryToken':
      if (event.answer && event.effect.suspect) banPayer(turn, event.effect.suspect);
  }
}

/** A relayer that is stopping takes no jobs. */
function submit(turn: Turn, jobs: readonly Job[]): void {
  const { state } = turn;
  for (const job of jobs) {
    if (state.stopping) finish(turn, job, { kind: 'unknown' });
    else state.open.add(job);
    if (!job.ended && job.intent.call) state.openCalls++;
  }
  state.queue.push(...jobs.filter((job) => !job.ended));
}

function operate(turn: Turn, job: OperationJob): void {
  const { state } = turn;
  if (state.stopping) return void finishOperation(turn, job, { kind: 'unknown' });
  state.openOperations.add(job);
  state.operations.push(job);
}

function takeWaited(turn: Turn, { timer }: AskOf<'wait'>): void {
  switch (timer.name) {
    case 'window':
      return void startRound(turn);
    case 'pause':
      return void endRound(turn);
    case 'poll':
      return void look(turn);
    case 'queue':
      return void requeue(turn, timer.jobs);
    case 'operation':
      return void resume(turn, timer.job, timer.why);
    case 'refused':
      turn.effects.push({ kind: 'fetchReceipts', sent: sentIn(timer.flights), for: { refused: timer.flights } });
  }
}

function takeCount({ state, effects }: Turn, effect: AskOf<'countTransactions'>, mined: number): void {
  state.nonces.learn(mined);
  if (effect.for === 'resend' && state.resend) state.resend.mined = mined;
  effects.push({ kind: 'readFees', for: effect.for });
}

function takeNote(turn: Turn, effect: AskOf<'note'>, waiting: ReadonlySet<string>): void {
  const noted = takeNoted(turn, effect.flights, effect.for, waiting);
  if (noted) (effect.for === 'round' ? sendNoted : resendNoted)(turn, noted);
}

function afterReceipts(turn: Turn, effect: AskOf<'fetchReceipts'>): void {
  if (effect.for === 'look') resendLate(turn);
  else if (effect.for === 'late') giveBackLost(turn);
  else closeRefused(turn, effect.for.refused);
}

function takeReadings(turn: Turn, effect: AskOf<'readPayers'>, readings: readonly (Reading | null)[]): void {
  const [job] = effect.jobs;
  if (!('minedAt' in effect.for)) {
    if (sortByReadings(turn, effect.for, effect.jobs, readings)) afterSorting(turn, effect.for);
  } else if (job) suspectByCode(turn, job, readings[0] ?? null, effect.for.minedAt);
}

function takeFound(turn: Turn, effect: AskOf<'lookUp'>, found: Found): void {
  const { job, atBlock } = effect;
  if (effect.for === 'examination') endExamined(turn, job, found);
  else if (effect.for === 'alone') endMinedAlone(turn, job, found, atBlock ?? 0);
  else if (sortByLogs(turn, effect.for, job, found)) afterSorting(turn, effect.for);
}

function afterSorting(turn: Turn, sorting: Sorting): void {
  const { after } = sorting;
  if (typeof after !== 'string') return void replace(turn, after.replace, after.helps, sorting);
  if (after === 'examine') return void examine(turn, sorting);
  if (after === 'lost') return void takeLost(turn, sorting);
  reopen(turn, sorting);
  if (after === 'refused') examineRest(turn);
}

/** An effect failed. The next round or look does what this one has left undone. */
function takeFailure(turn: Turn, effect: Ask, error: unknown): void {
  if (effect.kind === 'note') dropNotes(turn, effect.flights);
  if (effect.kind === 'send') return void sendUnanswered(turn, effect.flights, error);
  if (effect.kind === 'tryOut') return void giveUpRound(turn, error);
  if (effect.kind === 'tryOperation') return void takeOperationTrial(turn, effect.job, null);
  if (effect.kind === 'fetchReceipts' && typeof effect.for !== 'string') {
    turn.effects.push({ kind: 'warn', detail: { err: error }, message: 'receipts unread' });
    return void closeRefused(turn, effect.for.refused);
  }
  if (effect.kind === 'fetchReceipts') return void giveUpLook(turn, error);
  if (effect.kind === 'note' || effect.kind === 'countTransactions' || effect.kind === 'readFees')
    return void (effect.for === 'round' ? giveUpRound : giveUpLook)(turn, error);
  throw error;
}
