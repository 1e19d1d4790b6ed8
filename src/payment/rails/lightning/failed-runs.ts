import { AppError } from '../../../errors.ts';
import type { Clock } from '../../../lib/clock.ts';
import { setNewest } from '../../../lib/set-newest.ts';
import type { ProofKey } from '../../../store/ports/proofs.ts';

/** The wait after a claim's first failed run, in milliseconds. Each further failure doubles it. */
const FIRST_MS = 1000;
/** The longest wait between two runs of one claim, in milliseconds. */
const LONGEST_MS = 60_000;
/** About 2 MB at most. Beyond that, the claim that failed longest ago is dropped. */
const MAX_CLAIMS = 10_000;

/** The claims whose last run failed and left nothing to deliver. */
export interface FailedRuns {
  /** Throws 503 `paid_run_failed` (`charged: "unknown"`, with the time that is left) while the claim must wait for its next run. */
  check(key: ProofKey): void;
  /** Notes one more failed run of a claim. */
  failed(key: ProofKey): void;
  /** Forgets a claim, because its answer was made. */
  succeeded(key: ProofKey): void;
}

/**
 * Limits the runs that one payment can cause while its handler fails: the wait between two runs is 1, 2, 4 … 60 s. Kept in this process's memory and
 * bounded. A restart forgets it, and processes do not share it.
 */
export function createFailedRuns(clock: Clock, maxClaims = MAX_CLAIMS): FailedRuns {
  const waits = new Map<string, { waitMs: number; untilMs: number }>();
  return {
    check(key) {
      const leftMs = (waits.get(nameOf(key))?.untilMs ?? 0) - clock.nowMs();
      if (leftMs > 0) throw mustWait(Math.ceil(leftMs / 1000));
    },
    failed(key) {
      const name = nameOf(key);
      const waitMs = Math.min(LONGEST_MS, 2 * (waits.get(name)?.waitMs ?? FIRST_MS / 2));
      setNewest(waits, name, { waitMs, untilMs: clock.nowMs() + waitMs }, maxClaims);
    },
    succeeded(key) {
      waits.delete(nameOf(key));
    },
  };
}

function nameOf({ network, paymentHash }: ProofKey): string {
  return `${network} ${Buffer.from(paymentHash).toString('base64')}`;
}

function mustWait(retryAfterSeconds: number): AppError {
  const detail =
    'The last run for this payment failed a moment ago. The payment stays good for 7 days: present the same proof again after the time in Retry-After, never pay twice.';
  return new AppError(503, 'paid_run_failed', detail, { charged: 'unknown', retryAfterSeconds });
}
