import type { Payment } from '../store/ports/sales.ts';
import type { Ledger } from './ledger.ts';
import { createLooks } from './looks.ts';
import { createReconciliation } from './reconciliation.ts';
import { createTasks, type TasksOptions } from './settlement-tasks.ts';
import { ALREADY_USED, type Intent, type LookupRank, type Outcome, type SettlingRail } from './settler.ts';

interface SettlementOptions extends Omit<TasksOptions, 'looks'> {
  ledger: Ledger;
  /** Who settles a row, and where it shows, by the contract that its payer signed for; null leaves the row as it is. */
  railOf(contract: Uint8Array): SettlingRail | null;
  /** How long a buyer's connection is held for an outcome. */
  waitMs: number;
}

const OPEN: Outcome = { kind: 'unknown' };
/** Brings stored intents to their end and writes it down, whether or not a buyer waits. */
export function createSettlement(options: SettlementOptions) {
  const { ledger, railOf, clock, waitMs } = options;
  const looks = createLooks(clock);
  const tasks = createTasks({ ...options, looks });
  const attempts = createAttempts(options);
  const reconcile = createReconciliation({ ledger, looks, tasks, look: attempts.lookThenSend, pauseMs: waitMs / 10 });

  /** Waits for an end, but no longer than a buyer is held; what is open then is `unknown`. Returns the row as it stands. */
  async function wait(id: string, started: Promise<void>): Promise<Payment | null> {
    await tasks.within(waitMs, started);
    const row = await ledger.get(id);
    // A write only where there is something to write: most have ended by now.
    if (row?.state !== 'settling') return row;
    await ledger.unknown(id);
    return ledger.get(id);
  }

  return {
    /** Settles a fresh intent of the rail whose contract this is. */
    settle: (intent: Intent, contract: Uint8Array) =>
      wait(
        intent.id,
        tasks.run(intent.id, () => attempts.send(railOf(contract), intent)),
      ),
    /** The same for a row that the evidence may tell of already; a buyer that asks again at once gets the row as it stands. */
    resume: (payment: Payment) => {
      const { id } = payment;
      if (!tasks.of(id) && !looks.isDueForBuyer(id)) return ledger.get(id);
      return wait(
        id,
        tasks.run(id, () => attempts.lookThenSend(payment, 'settle')),
      );
    },
    /**
     * Brings a row that another process stored to its end and returns when that is written, or cannot be. The row itself says whether the
     * chain may know it already; one that awaits no settlement is left alone.
     */
    carry: async (id: string): Promise<void> => {
      const payment = tasks.of(id) ? null : await ledger.get(id);
      if (payment && payment.state !== 'settling' && payment.state !== 'unknown') return;
      if (!payment) return tasks.of(id);
      await tasks.run(id, () =>
        isFresh(payment) ? attempts.sendRow(payment) : attempts.lookThenSend(payment, 'settle'),
      );
    },
    reconcile,
    idle: tasks.idle,
  };
}

/** What a task does: it hands a payment to its rail's settler, at once or after a look at the evidence. */
function createAttempts({ ledger, railOf }: SettlementOptions) {
  async function send(rail: SettlingRail | null, intent: Intent | null): Promise<Outcome> {
    if (!rail || !intent) return OPEN;
    const [outcome] = rail.settler.settle([intent]);
    return (await outcome) ?? OPEN;
  }

  const sendRow = (payment: Payment): Promise<Outcome> => send(railOf(payment.contract), intentOf(payment));

  /** What the evidence already tells of a row, or else its settlement (again). */
  async function lookThenSend(payment: Payment, rank: LookupRank): Promise<Outcome> {
    const intent = intentOf(payment);
    const rail = railOf(payment.contract);
    if (!intent || !rail) return OPEN;
    const verdict = await rail.evidence.lookup(intent.authorization, intent.fromBlock, { rank });
    const wasOurs = payment.transaction !== null || payment.reason !== null;
    if (verdict.kind === 'settled' && rail.ownOnly && !wasOurs) return { kind: 'failed', reason: ALREADY_USED };
    if (verdict.kind !== 'open') return verdict;
    // As it is now: whether it was broadcast may have changed since the caller read it.
    const row = await ledger.get(payment.id);
    return row?.state === 'settling' || row?.state === 'unknown' ? sendRow(row) : OPEN;
  }

  return { send, sendRow, lookThenSend };
}

export type Settlement = ReturnType<typeof createSettlement>;

/** Whether a row has never been near the chain: neither handed out nor failed before. */
function isFresh({ state, transaction, reason }: Payment): boolean {
  return state === 'settling' && transaction === null && reason === null;
}

/** The intent kept in a row, while its signature is there. */
function intentOf(payment: Payment): Intent | null {
  const { id, payer: from, payTo: to, amount: value, validAfter, validBefore, nonce, signature } = payment;
  if (!signature) return null;
  return {
    id,
    authorization: { from, to, value, validAfter, validBefore, nonce, signature },
    fromBlock: payment.checkedBlock ?? 0,
    broadcast: payment.transaction !== null,
    // A row from before this was kept is treated as the one that may cost more.
    hasCode: payment.payerHasCode ?? true,
  };
}
