import type { Payment } from '../store/ports/sales.ts';
import type { Ledger } from './ledger.ts';
import { createLooks } from './looks.ts';
import { createReconciliation } from './reconciliation.ts';
import { createTasks, type TasksOptions } from './settlement-tasks.ts';
import { ALREADY_USED, type Intent, type LookupRank, type Outcome, type SettlingRail } from './settler.ts';

interface SettlementOptions extends Omit<TasksOptions, 'looks'> {
  ledger: Ledger;
  /** The rail of a row, by the contract that the row's payer signed for. Null leaves the row as it is. */
  railOf(contract: Uint8Array): SettlingRail | null;
  /** How long a buyer's connection is held for an outcome, in milliseconds. */
  waitMs: number;
}

const UNKNOWN: Outcome = { kind: 'unknown' };

/** Settles stored intents and writes down their outcomes, whether or not a buyer waits. */
export function createSettlement(options: SettlementOptions) {
  const { ledger, railOf, clock, waitMs } = options;
  const looks = createLooks(clock);
  const tasks = createTasks({ ...options, looks });
  const attempts = createAttempts(options);
  const reconcile = createReconciliation({ ledger, looks, tasks, look: attempts.lookThenSend, pauseMs: waitMs / 10 });

  /** Waits for the end of a row, `waitMs` at the most. A row that is still settling then becomes `unknown`. Returns the row. */
  async function wait(id: string, started: Promise<void>): Promise<Payment | null> {
    await tasks.within(waitMs, started);
    const row = await ledger.get(id);
    // Most rows have ended by now, and need no write.
    if (row?.state !== 'settling') return row;
    await ledger.unknown(id);
    return ledger.get(id);
  }

  const rankOf = (id: string): LookupRank => (looks.isRepeated(id) ? 'collect' : 'settle');

  return {
    /** Settles a fresh intent of the rail with this contract. */
    settle: (intent: Intent, contract: Uint8Array) =>
      wait(
        intent.id,
        tasks.run(intent.id, () => attempts.send(railOf(contract), intent)),
      ),
    /** The same for a row whose payment the evidence may already show. A buyer that asks again at once gets the row unchanged. */
    resume: (payment: Payment) => {
      const { id } = payment;
      if (!tasks.of(id) && !looks.isDueForBuyer(id)) return ledger.get(id);
      return wait(
        id,
        tasks.run(id, () => attempts.lookThenSend(payment, rankOf(id))),
      );
    },
    /**
     * Settles a row that another process stored. Returns when its end is written or cannot be reached now. The row says whether its payment may be on
     * the chain; then the evidence is read first. A row that awaits no settlement is left alone.
     */
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

/** What a task does: it passes a payment to its rail's settler, at once or after a read of the evidence. */
function createAttempts({ ledger, railOf }: SettlementOptions) {
  async function send(rail: SettlingRail | null, intent: Intent | null): Promise<Outcome> {
    if (!rail || !intent) return UNKNOWN;
    const [outcome] = rail.settler.settle([intent]);
    return (await outcome) ?? UNKNOWN;
  }

  const sendRow = (payment: Payment): Promise<Outcome> => send(railOf(payment.contract), intentOf(payment));

  /** Returns the outcome that the evidence shows. Without one, settles the row (again). */
  async function lookThenSend(payment: Payment, rank: LookupRank): Promise<Outcome> {
    const intent = intentOf(payment);
    const rail = railOf(payment.contract);
    if (!intent || !rail) return UNKNOWN;
    const verdict = await rail.evidence.lookup(intent.authorization, intent.fromBlock, { rank });
    const wasOurs = payment.transaction !== null || payment.reason !== null;
    if (verdict.kind === 'settled' && rail.ownOnly && !wasOurs) return { kind: 'failed', reason: ALREADY_USED };
    if (verdict.kind !== 'open') return verdict;
    // The row is read again, because its broadcast may have been noted since the caller read it.
    const row = await ledger.get(payment.id);
    return row?.state === 'settling' || row?.state === 'unknown' ? sendRow(row) : UNKNOWN;
  }

  return { send, sendRow, lookThenSend };
}

export type Settlement = ReturnType<typeof createSettlement>;

/** Whether a row's payment has never left this service: no transaction is noted, and it has not failed before. */
function isFresh({ state, transaction, reason }: Payment): boolean {
  return state === 'settling' && transaction === null && reason === null;
}

/** The intent in a row. Null once its signature is wiped. */
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
