import type { Clock } from '../../lib/clock.ts';
import type { Payment } from '../../store/ledger-port.ts';
import type { Ledger } from '../ledger.ts';
import type { Authorization } from './authorization.ts';
import type { Evidence, Verdict } from './evidence.ts';
import type { Intent, Settler } from './settler.ts';

interface SettlementOptions {
  ledger: Ledger;
  settler: Settler;
  evidence: Evidence;
  clock: Clock;
  /** How long a buyer's connection is held for an outcome. */
  waitMs: number;
  log: { info(detail: object, message: string): void; error(detail: object, message: string): void };
}

/**
 * Brings stored intents to their end and writes it down, whether or not somebody waits.
 * An intent is worked on once at a time in this process; what a dead one left comes back through `resume`.
 */
export function createSettlement({ ledger, settler, evidence, clock, waitMs, log }: SettlementOptions) {
  const running = new Map<string, Promise<void>>();

  function start(intent: Intent): Promise<void> {
    const known = running.get(intent.id);
    if (known) return known;
    const [outcome] = settler.settle([intent]);
    const work = (async () => {
      const verdict = await outcome;
      if (verdict) await record(intent.id, verdict);
    })()
      // The row stays as it is and the next reconciliation finds it: nothing is lost by an unwritten outcome.
      .catch((error) => log.error({ err: error, payment: intent.id }, 'an outcome could not be written'))
      .finally(() => running.delete(intent.id));
    running.set(intent.id, work);
    return work;
  }

  async function record(id: string, verdict: Verdict): Promise<void> {
    if (verdict.kind === 'settled') await ledger.settled(id, verdict.transaction, verdict.block);
    else if (verdict.kind === 'failed') await ledger.failed(id, verdict.reason);
    log.info(
      { payment: id, outcome: verdict.kind, ...('reason' in verdict && { reason: verdict.reason }) },
      'settlement',
    );
  }

  /** Waits for an intent's end, but no longer than a buyer is held; what is open then is `unknown`. Returns the row as it stands. */
  async function wait(id: string, work: Promise<void>): Promise<Payment | null> {
    const timer = new AbortController();
    await Promise.race([work, clock.sleep(waitMs, timer.signal).catch(() => {})]);
    timer.abort();
    await ledger.unknown(id);
    return ledger.get(id);
  }

  /** Looks at an unfinished row: writes down what the chain already tells, or settles it (again). */
  async function resume(payment: Payment): Promise<void> {
    const known = running.get(payment.id);
    if (known) return known;
    const intent = intentOf(payment);
    if (!intent) return;
    const verdict = await evidence.lookup(intent.authorization, intent.fromBlock);
    if (verdict.kind === 'open') return start(intent);
    if (verdict.kind !== 'unknown') await record(payment.id, verdict);
  }

  return {
    settle: (intent: Intent) => wait(intent.id, start(intent)),
    /** The same for a row of before: a failing chain leaves it unknown. */
    resume: (payment: Payment) =>
      wait(
        payment.id,
        resume(payment).catch(() => {}),
      ),
    /** One round over everything unfinished, for the timer and the start. */
    reconcile: async () => {
      for (const payment of await ledger.unfinished()) {
        if (running.has(payment.id)) continue;
        // Not awaited to its end: a settlement takes blocks, and the next row need not wait for it.
        resume(payment).catch((error) => log.error({ err: error, payment: payment.id }, 'not reconciled'));
      }
      await ledger.purge();
    },
    idle: () => Promise.all(running.values()),
  };
}

export type Settlement = ReturnType<typeof createSettlement>;

/** The intent kept in a row, while its signature is there. */
function intentOf(payment: Payment): Intent | null {
  if (!payment.signature) return null;
  const authorization: Authorization = {
    from: payment.payer,
    to: payment.payTo,
    value: payment.amount,
    validAfter: payment.validAfter,
    validBefore: payment.validBefore,
    nonce: payment.nonce,
    signature: payment.signature,
  };
  return { id: payment.id, authorization, fromBlock: payment.checkedBlock ?? 0 };
}
