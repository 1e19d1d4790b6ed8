import type { Clock } from '../../../lib/clock.ts';
import type { ChannelStore } from '../../../store/ports/channels.ts';
import type { OperationOutcome } from '../../operation.ts';
import type { Relaying } from '../../settler.ts';
import type { ClaimLimits } from './claim-rows.ts';

/** Rounds of claims that fail one after another before claims count as failing. A round is tried every RECONCILE_INTERVAL_MS. */
const MANY = 3;
/** Milliseconds between two errors in the log. */
const PAUSE_MS = 3_600_000;
/** Overdue charges at which sales stop, in times of the threshold of a claim: what ten channels may owe by plan. */
const MOST_AT_RISK = 10n;

interface ClaimAlarmOptions {
  readonly store: Pick<ChannelStore, 'totalsOverdue'>;
  readonly network: string;
  readonly limits: ClaimLimits;
  readonly clock: Clock;
  readonly log: { error(detail: object, message: string): void };
}

/**
 * The sum of overdue charges at which all sales of the rail stop while claims fail, in base units. An overdue charge waits for more than twice its time.
 * There is none while claims work, except in channels that were set aside.
 */
export function mostAtRisk({ threshold }: Pick<ClaimLimits, 'threshold'>): bigint {
  return MOST_AT_RISK * threshold;
}

/** The time before which an unclaimed charge is overdue, in Unix milliseconds. */
export function overdueBefore({ ageMs }: Pick<ClaimLimits, 'ageMs'>, nowMs: number): number {
  return nowMs - 2 * ageMs;
}

/**
 * Watches whether charges are claimed. Logs an error, at most once an hour, while charges are overdue or MANY rounds in a row have failed. Says why
 * sales must stop while rounds fail and more is overdue than MOST_AT_RISK allows. A channel that the contract refuses fails no round. So a payer cannot
 * stop the sales to others.
 */
export function createClaimAlarm({ store, network, limits, clock, log }: ClaimAlarmOptions) {
  let failures = 0;
  let hasFailed = false;
  let alertedMs = Number.NEGATIVE_INFINITY;
  let reason: string | null = null;

  async function judge(): Promise<void> {
    const overdue = await store.totalsOverdue(network, overdueBefore(limits, clock.nowMs()));
    const isFailing = failures >= MANY;
    reason = isFailing && overdue > mostAtRisk(limits) ? 'claims of payment channels fail' : null;
    if ((!isFailing && overdue === 0n) || clock.nowMs() - alertedMs < PAUSE_MS) return;
    alertedMs = clock.nowMs();
    const detail = { overdue: String(overdue), failedRounds: failures, areSalesStopped: reason !== null };
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
    /** Why nothing may be sold over the rail now; null while sales go on. */
    why: (): string | null => reason,
  };
}
