import type { Clock } from '../../../lib/clock.ts';
import type { ChannelStore } from '../../../store/ports/channels.ts';
import type { OperationOutcome } from '../../operation.ts';
import type { Relaying } from '../../settler.ts';
import { createClaimRisk, overdueBefore } from './claim-risk.ts';
import type { ClaimLimits } from './claim-rows.ts';

/** Rounds of claims that fail one after another before claims count as failing. A round is tried every RECONCILE_INTERVAL_MS. */
const MANY = 3;
/** Milliseconds between two errors in the log. */
const PAUSE_MS = 3_600_000;
const FAILING = 'claims of payment channels fail';

interface ClaimAlarmOptions {
  readonly store: Pick<ChannelStore, 'totalsOverdue'>;
  readonly network: string;
  readonly limits: ClaimLimits;
  readonly clock: Clock;
  readonly log: { error(detail: object, message: string): void };
}

/**
 * Watches whether charges are claimed. Logs an error, at most once an hour, while charges are overdue or MANY rounds in a row have failed. A channel that
 * the contract refuses fails no round. So a payer cannot stop the sales to others.
 */
export function createClaimAlarm({ store, network, limits, clock, log }: ClaimAlarmOptions) {
  const risk = createClaimRisk({ store, network, limits, clock });
  const readOverdue = () => store.totalsOverdue(network, overdueBefore(limits, clock.nowMs()));
  let failures = 0;
  let hasFailed = false;
  let alertedMs = Number.NEGATIVE_INFINITY;

  const isFailing = (): boolean => failures >= MANY;
  const whyStopped = (): string | null => (isFailing() && risk.isTooMuch(0n) ? FAILING : null);

  async function judge(): Promise<void> {
    if (failures === 0) risk.worked();
    const overdue = await (failures === 0 ? readOverdue() : risk.read());
    if ((!isFailing() && overdue === 0n) || clock.nowMs() - alertedMs < PAUSE_MS) return;
    alertedMs = clock.nowMs();
    const detail = { overdue: String(overdue), failedRounds: failures, areSalesStopped: whyStopped() !== null };
    log.error(detail, 'ALERT: charges of payment channels are not claimed');
  }

  return {
    /** The relayer, whose operations are watched during a round. */
    watching: ({ operate }: Pick<Relaying, 'operate'>): Pick<Relaying, 'operate'> => ({
      operate: async (operation): Promise<OperationOutcome> => {
        const outcome = await operate(operation);
        if (outcome.kind !== 'done') hasFailed = true;
        return outcome;
      },
    }),
    /** Runs a round of claims and judges it. Rejects when the round does. */
    async round(claim: () => Promise<unknown>): Promise<void> {
      hasFailed = false;
      try {
        await claim();
      } catch (error) {
        hasFailed = true;
        throw error;
      } finally {
        failures = hasFailed ? failures + 1 : 0;
        await judge();
      }
    },
    /** Why no claim can be counted on now; null while rounds work. Deposits and refunds wait then, and vouchers are judged by the risk. */
    why: (): string | null => (isFailing() ? FAILING : null),
    /** Why nothing is sold over the rail any more, and it is not offered: rounds fail, and too much is at risk. Null while it is offered. */
    whyStopped,
  };
}
