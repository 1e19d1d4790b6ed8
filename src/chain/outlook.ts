import { type FeeRule, type FeeState, toGas } from './fee-rule.ts';

/** A base fee for each of three assumptions, in wei. */
export interface Outlook {
  readonly horizonSeconds: number;
  readonly low: bigint;
  readonly expected: bigint;
  readonly high: bigint;
}

/** What the outlook starts from. */
export interface OutlookInput {
  /** The state after the newest block; its `baseFee` is the fee of the next block. */
  readonly state: FeeState;
  readonly rule: FeeRule;
  readonly gasLimit: bigint;
  readonly blockTimeSeconds: number;
  /** Mean use of gas (0 to 1) in each minute of the last day, oldest first; null for a minute without data. */
  readonly minutes: readonly (number | null)[];
}

/** Horizons in minutes: from the time of a signature to an hour of planning. */
export const HORIZON_MINUTES = [1, 5, 15, 60];
const PERCENTS = { low: 5, expected: 50, high: 95 } as const;

/**
 * Runs the chain's own fee rule forward to each horizon, under three assumptions about how full the blocks will be:
 * the 5th, 50th and 95th percentile of the mean use of gas in all periods of that length over the last day.
 * A horizon is left out when the day's data hold no period of its length without a gap.
 */
export function forecastFees(input: OutlookInput): Outlook[] {
  return HORIZON_MINUTES.flatMap((minutes) => {
    const means = meansOver(input.minutes, minutes);
    if (means.length === 0) return [];
    const blocks = Math.max(Math.round((minutes * 60) / input.blockTimeSeconds), 1);
    const at = (percent: number) => runRule(input, nearestRank(means, percent), blocks);
    return [
      { horizonSeconds: minutes * 60, low: at(PERCENTS.low), expected: at(PERCENTS.expected), high: at(PERCENTS.high) },
    ];
  });
}

/** Means of every run of `length` minutes without a gap, ascending. */
function meansOver(minutes: readonly (number | null)[], length: number): number[] {
  const means: number[] = [];
  for (let from = 0; from + length <= minutes.length; from++) {
    const run = minutes.slice(from, from + length).filter((use) => use !== null);
    if (run.length === length) means.push(run.reduce((sum, use) => sum + use, 0) / length);
  }
  return means.sort((a, b) => a - b);
}

function nearestRank(ascending: readonly number[], percent: number): number {
  return ascending[Math.max(Math.ceil((percent / 100) * ascending.length) - 1, 0)] ?? 0;
}

/** The fee after `blocks` blocks with the same utilisation, the next block's known fee included. */
function runRule({ state, rule, gasLimit }: OutlookInput, utilisation: number, blocks: number): bigint {
  const gasUsed = toGas(utilisation, gasLimit);
  let now = state;
  for (let block = 1; block < blocks; block++) {
    const next = rule(now, gasUsed);
    // Neither value changes any more, so all later blocks have this fee.
    if (next.baseFee === now.baseFee && next.smoothed === now.smoothed) return next.baseFee;
    now = next;
  }
  return now.baseFee;
}
