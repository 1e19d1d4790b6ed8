import type { Clock } from '../lib/clock.ts';
import type { Payment } from '../store/ports/sales.ts';
import type { Ledger } from './ledger.ts';
import { createLooks } from './looks.ts';
import { ALREADY_USED, type Intent, type LookupRank, type Outcome, type SettlingRail } from './settler.ts';

interface SettlementOptions {
  ledger: Ledger;
  /** Who settles a row, and where it shows, by the contract that its payer signed for; null leaves the row as it is. */
  railOf(contract: Uint8Array): SettlingRail | null;
  clock: Clock;
  /** How long a buyer's connection is held for an outcome. */
  waitMs: number;
  /** The number of the lease under which this process settles, where several may. */
  fencingToken?: number | undefined;
  log: { info(detail: object, message: string): void; error(detail: object, message: string): void };
}

const OPEN: Outcome = { kind: 'unknown' };
/** Why a timer is stopped. A reason that is given costs nothing; the one that would be made otherwise has a stack. */
const ENDED = 'ended';
/** Rows that one round looks at: what is left comes in the next one, so that no round is long. */
const ROUND = 100;

/**
 * Brings stored intents to their end and writes it down, whether or not a buyer waits.
 * Runs one task per sale, from the first look at the evidence to the written end. A second caller waits for the same task. So a late answer
 * cannot start again what has ended.
 */
export function createSettlement({ ledger, railOf, clock, waitMs, fencingToken, log }: SettlementOptions) {
  const running = new Map<string, Promise<void>>();
  const looks = createLooks(clock);
  // Where the next round goes on.
  let reached = '';

  function work(id: string, run: () => Promise<Outcome>): Promise<void> {
    const known = running.get(id);
    if (known) return known;
    const started = run()
      .then((outcome) => record(id, outcome))
      // The row stays open as it is, and the next reconciliation finds it.
      .catch((error) => log.error({ err: error, payment: id }, 'a settlement could not be worked on'))
      .finally(() => running.delete(id));
    running.set(id, started);
    return started;
  }

  async function record(id: string, outcome: Outcome): Promise<void> {
    looks.note(id, outcome.kind !== 'unknown');
    if (outcome.kind === 'settled') await ledger.settled(id, outcome.transaction, outcome.block, outcome.paid);
    else if (outcome.kind === 'failed') await ledger.failed(id, outcome.reason, fencingToken);
    log.info(
      { payment: id, outcome: outcome.kind, ...('reason' in outcome && { reason: outcome.reason }) },
      'settlement',
    );
  }

  async function send(rail: SettlingRail | null, intent: Intent | null): Promise<Outcome> {
    if (!rail || !intent) return OPEN;
    const [outcome] = rail.settler.settle([intent]);
    return (await outcome) ?? OPEN;
  }

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

  const sendRow = (payment: Payment): Promise<Outcome> => send(railOf(payment.contract), intentOf(payment));

  /** Waits for a piece of work, but no longer than this. */
  async function within(ms: number, started: Promise<void>): Promise<void> {
    const timer = new AbortController();
    await Promise.race([started, clock.sleep(ms, timer.signal).catch(() => {})]);
    timer.abort(ENDED);
  }

  /** Waits for an end, but no longer than a buyer is held; what is open then is `unknown`. Returns the row as it stands. */
  async function wait(id: string, started: Promise<void>): Promise<Payment | null> {
    await within(waitMs, started);
    const row = await ledger.get(id);
    // A write only where there is something to write: most have ended by now.
    if (row?.state !== 'settling') return row;
    await ledger.unknown(id);
    return ledger.get(id);
  }

  /** Looks at one open row; false where that costs nothing now. */
  async function reconcileOne(payment: Payment, isServed: (payment: Payment) => boolean): Promise<boolean> {
    const { id, state } = payment;
    if (isServed(payment) || running.has(id)) return false;
    if (state === 'reserved') {
      await ledger.release(id);
      return false;
    }
    if (!looks.isDue(id)) return false;
    if (state === 'settling') await ledger.unknown(id);
    await within(
      waitMs / 10,
      work(id, () => lookThenSend(payment, 'collect')),
    );
    return true;
  }

  return {
    /** Settles a fresh intent of the rail whose contract this is. */
    settle: (intent: Intent, contract: Uint8Array) =>
      wait(
        intent.id,
        work(intent.id, () => send(railOf(contract), intent)),
      ),
    /** The same for a row that the evidence may tell of already; a buyer who asks again at once hears what is known. */
    resume: (payment: Payment) => {
      const { id } = payment;
      if (!running.has(id) && !looks.isDueForBuyer(id)) return ledger.get(id);
      return wait(
        id,
        work(id, () => lookThenSend(payment, 'settle')),
      );
    },
    /**
     * Brings a row that another process stored to its end and returns when that is written, or cannot be. The row itself says whether the
     * chain may know it already; one that awaits no settlement is left alone.
     */
    carry: async (id: string): Promise<void> => {
      const payment = running.has(id) ? null : await ledger.get(id);
      if (payment && payment.state !== 'settling' && payment.state !== 'unknown') return;
      if (!payment) return running.get(id);
      await work(id, () => (isFresh(payment) ? sendRow(payment) : lookThenSend(payment, 'settle')));
    },
    /**
     * One round over what has not ended and no call works on, some of it where there is much: a reservation is given back, the rest is looked
     * up and settled. A row without an end is looked at again after a pause that doubles. Each row's look is waited for before the next,
     * because public nodes take few requests; its settlement is not.
     */
    reconcile: async (isServed: (payment: Payment) => boolean) => {
      let looked = 0;
      let last = '';
      for await (const payment of ledger.unfinished(reached)) {
        if (await reconcileOne(payment, isServed)) looked += 1;
        last = payment.id;
        if (looked >= ROUND) break;
      }
      // At the end the next round begins anew.
      reached = looked >= ROUND ? last : '';
      await ledger.purge();
    },
    idle: () => Promise.all(running.values()),
  };
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
