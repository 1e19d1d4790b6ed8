import type { Clock } from '../lib/clock.ts';
import type { Common } from '../lib/common.ts';
import type { Payment } from '../store/ports/payments.ts';
import type { Ledger } from './ledger.ts';
import { ALREADY_USED, type Intent, type LookupRank, type Outcome, type Settler } from './settler.ts';

// Settles stored intents and writes down how they ended, whether or not a buyer waits. One task a row reads the
// evidence where it may have been sent, sends it, and notes the end. Settling twice is safe: a nonce moves money once.

/** The settler of a row, by the contract that the row's payer signed for. Null leaves the row as it is. */
type SettlerOf = (contract: Uint8Array) => Settler | null;

const UNKNOWN: Outcome = { kind: 'unknown' };

/** `waitMs`: how long a buyer's connection is held for an outcome. */
export function createSettleRows(
  common: Common,
  ledger: Ledger,
  settlerOf: SettlerOf,
  waitMs: number,
  fencingToken?: number,
) {
  const schedule = createLookupSchedule(common.clock);
  const tasks = createTasks(common, ledger, schedule, fencingToken);
  const attempts = createAttempts(ledger, settlerOf);
  const reconcile = createReconciliation({
    ledger,
    schedule,
    tasks,
    look: attempts.lookThenSend,
    pauseMs: waitMs / 10,
  });

  /** Waits for the end of a row, `waitMs` at the most. A row that is still settling then becomes `unknown`. */
  async function wait(id: string, started: Promise<void>): Promise<Payment | null> {
    await tasks.within(waitMs, started);
    const row = await ledger.get(id);
    // Most rows have ended by now, and need no write.
    if (row?.state !== 'settling') return row;
    await ledger.unknown(id);
    return ledger.get(id);
  }

  const rankOf = (id: string): LookupRank => (schedule.isRepeated(id) ? 'collect' : 'settle');

  return {
    settle: (intent: Intent, contract: Uint8Array) =>
      wait(
        intent.id,
        tasks.run(intent.id, () => attempts.send(settlerOf(contract), intent)),
      ),
    /** For a row whose payment the evidence may show. A buyer that asks again at once gets the row unchanged. */
    resume: (payment: Payment) => {
      const { id } = payment;
      if (!tasks.of(id) && !schedule.isDueForBuyer(id)) return ledger.get(id);
      return wait(
        id,
        tasks.run(id, () => attempts.lookThenSend(payment, rankOf(id))),
      );
    },
    // For a row that another process stored. Where its payment may be on the chain, the evidence is read first.
    carry: async (id: string): Promise<void> => {
      const payment = tasks.of(id) ? null : await ledger.get(id);
      if (payment && payment.state !== 'settling' && payment.state !== 'unknown') return;
      if (!payment) return tasks.of(id);
      await tasks.run(id, () =>
        isFresh(payment) ? attempts.sendRow(payment) : attempts.lookThenSend(payment, rankOf(id)),
      );
    },
    reconcile,
    idle: tasks.idle,
  };
}

function createAttempts(ledger: Ledger, settlerOf: SettlerOf) {
  async function send(settler: Settler | null, intent: Intent | null): Promise<Outcome> {
    if (!settler || !intent) return UNKNOWN;
    const [outcome] = settler.settle([intent]);
    return (await outcome) ?? UNKNOWN;
  }

  const sendRow = (payment: Payment): Promise<Outcome> => send(settlerOf(payment.contract), intentOf(payment));

  /** The end that the evidence shows. Without one, settles the row (again). */
  async function lookThenSend(payment: Payment, rank: LookupRank): Promise<Outcome> {
    const intent = intentOf(payment);
    const settler = settlerOf(payment.contract);
    if (!intent || !settler) return UNKNOWN;
    const verdict = await settler.lookup(intent.authorization, intent.fromBlock, { rank });
    const wasOurs = payment.transaction !== null || payment.reason !== null;
    if (verdict.kind === 'settled' && settler.ownOnly && !wasOurs) return { kind: 'failed', reason: ALREADY_USED };
    if (verdict.kind !== 'open') return verdict;
    // A broadcast may have been noted since the caller read the row.
    const row = await ledger.get(payment.id);
    return row?.state === 'settling' || row?.state === 'unknown' ? sendRow(row) : UNKNOWN;
  }

  return { send, sendRow, lookThenSend };
}

export type SettleRows = ReturnType<typeof createSettleRows>;

function isFresh({ state, transaction, reason }: Payment): boolean {
  return state === 'settling' && transaction === null && reason === null;
}

/** Null once the row's signature is wiped. */
function intentOf(payment: Payment): Intent | null {
  const { id, payer: from, payTo: to, amount: value, validAfter, validBefore, nonce, signature } = payment;
  if (!signature) return null;
  const call = payment.calldata ? { to: payment.contract, data: payment.calldata } : null;
  const terms = { from, to, value, validAfter, validBefore, nonce, signature };
  return {
    id,
    authorization: { ...terms, ...(call && { passedTo: call.to }) },
    call,
    fromBlock: payment.checkedBlock ?? 0,
    broadcast: payment.transaction !== null,
    // A row from before this column existed counts as an account with code, which may cost more.
    hasCode: payment.payerHasCode ?? true,
  };
}

/** Why a timer is stopped. A constant costs nothing; the default reason is an error with a stack trace. */
const ENDED = 'ended';

// One task per sale. A second caller waits for the same task, so a late answer cannot restart an ended sale.
function createTasks({ clock, log }: Common, ledger: Ledger, schedule: LookupSchedule, fencingToken?: number) {
  const running = new Map<string, Promise<void>>();

  async function record(id: string, outcome: Outcome): Promise<void> {
    schedule.note(id, outcome.kind !== 'unknown');
    if (outcome.kind === 'settled') await ledger.settled(id, outcome.transaction, outcome.block, outcome.paid);
    else if (outcome.kind === 'failed') await ledger.failed(id, outcome.reason, fencingToken);
    log.info(
      { payment: id, outcome: outcome.kind, ...('reason' in outcome && { reason: outcome.reason }) },
      'settlement',
    );
  }

  return {
    of: (id: string): Promise<void> | undefined => running.get(id),
    run: (id: string, work: () => Promise<Outcome>): Promise<void> => {
      const known = running.get(id);
      if (known) return known;
      const started = work()
        .then((outcome) => record(id, outcome))
        // The row stays open, and the next reconciliation finds it.
        .catch((error) => log.error({ err: error, payment: id }, 'a settlement task failed'))
        .finally(() => running.delete(id));
      running.set(id, started);
      return started;
    },
    within: async (ms: number, started: Promise<void>): Promise<void> => {
      const timer = new AbortController();
      await Promise.race([started, clock.sleep(ms, timer.signal).catch(() => {})]);
      timer.abort(ENDED);
    },
    idle: () => Promise.all(running.values()),
  };
}

type Tasks = ReturnType<typeof createTasks>;

/** Rows that one round looks up. The next round takes the rest, so that no round is long. */
const ROUND = 100;

interface ReconciliationOptions {
  ledger: Pick<Ledger, 'release' | 'unknown' | 'unfinished' | 'purge'>;
  schedule: LookupSchedule;
  tasks: Pick<Tasks, 'of' | 'run' | 'within'>;
  look(payment: Payment, rank: LookupRank): Promise<Outcome>;
  /** Longest wait for the task of one row, in milliseconds. */
  pauseMs: number;
}

// One round over the open rows that no call works on; the next continues there. Public nodes take few requests, so a
// round waits up to `pauseMs` for one row before it starts the next.
function createReconciliation({ ledger, schedule, tasks, look, pauseMs }: ReconciliationOptions) {
  let reached = '';

  /** False when the row cost no lookup. */
  async function reconcileOne(payment: Payment, isServed: (payment: Payment) => boolean): Promise<boolean> {
    const { id, state } = payment;
    if (isServed(payment) || tasks.of(id)) return false;
    if (state === 'reserved') {
      await ledger.release(id);
      return false;
    }
    if (!schedule.isDue(id)) return false;
    if (state === 'settling') await ledger.unknown(id);
    await tasks.within(
      pauseMs,
      tasks.run(id, () => look(payment, 'collect')),
    );
    return true;
  }

  return async (isServed: (payment: Payment) => boolean): Promise<void> => {
    let looked = 0;
    let last = '';
    for await (const payment of ledger.unfinished(reached)) {
      if (await reconcileOne(payment, isServed)) looked += 1;
      last = payment.id;
      if (looked >= ROUND) break;
    }
    // After the last row, the next round starts with the oldest.
    reached = looked >= ROUND ? last : '';
    await ledger.purge();
  };
}

/** Between two lookups that a buyer causes: two blocks on Arc. */
const FOR_BUYER_MS = 1000;
/** Without a buyer, the pause doubles up to LONGEST_MS: evidence that is missing now rarely comes a second later. */
const FIRST_MS = 1000;
const LONGEST_MS = 60_000;
/** Lookups that are as urgent as a new settlement. A row without an end after these is rarely decided by the next. */
const URGENT = 2;

/** When an open row may be looked up again: it bounds what a buyer without patience and many old rows cost. */
export function createLookupSchedule(clock: Clock, longestMs = LONGEST_MS) {
  const lookups = new Map<string, { times: number; lastMs: number }>();

  const sinceMs = (id: string): number => clock.nowMs() - (lookups.get(id)?.lastMs ?? Number.NEGATIVE_INFINITY);
  const pauseMs = (id: string): number => Math.min(longestMs, FIRST_MS * 2 ** ((lookups.get(id)?.times ?? 1) - 1));

  return {
    /** Notes a lookup, and forgets a row that has ended. */
    note(id: string, hasEnded: boolean): void {
      const times = (lookups.get(id)?.times ?? 0) + 1;
      lookups.delete(id);
      if (!hasEnded) lookups.set(id, { times, lastMs: clock.nowMs() });
      forgetOld();
    },
    isDue: (id: string): boolean => sinceMs(id) >= pauseMs(id),
    /** Whether a row was looked up so often in vain that new settlements go first. */
    isRepeated: (id: string): boolean => (lookups.get(id)?.times ?? 0) >= URGENT,
    isDueForBuyer: (id: string): boolean => sinceMs(id) >= FOR_BUYER_MS,
  };

  /** Forgets rows that another process has ended. This process never looks them up again. */
  function forgetOld(): void {
    for (const [id, { lastMs }] of lookups) {
      if (clock.nowMs() - lastMs < 4 * longestMs) return;
      lookups.delete(id);
    }
  }
}

type LookupSchedule = ReturnType<typeof createLookupSchedule>;
