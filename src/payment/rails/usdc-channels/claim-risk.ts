import type { Clock } from '../../../lib/clock.ts';
import type { ChannelStore } from '../../../store/ports/channels.ts';
import type { ClaimLimits } from './claim-rows.ts';

/** What may be charged while claims fail, in times of the threshold of a claim: what ten channels may owe by plan. */
const MOST_AT_RISK = 10n;
/** Milliseconds after which the sums are read again, beside the sales. */
const FRESH_MS = 1000;
/** Milliseconds after which no sale is judged by the sums any more. */
const MOST_AGE_MS = 5000;
/** Milliseconds without trouble after which claims count as working again. A round is tried every RECONCILE_INTERVAL_MS, by default 5 s. */
const CALM_MS = 60_000;

interface ClaimRiskOptions {
  readonly store: Pick<ChannelStore, 'totalsOverdue'>;
  readonly network: string;
  readonly limits: ClaimLimits;
  readonly clock: Clock;
}

/** The time before which an unclaimed charge is overdue, in Unix milliseconds. */
export function overdueBefore({ ageMs }: Pick<ClaimLimits, 'ageMs'>, nowMs: number): number {
  return nowMs - 2 * ageMs;
}

/**
 * Bounds the money that is at risk because claims fail, for all channels together. By plan the charges of any number of channels wait for their claims.
 * While claims fail, two sums are bounded by MOST_AT_RISK thresholds each:
 * 1. what was charged since the failure began, by this process and by others;
 * 2. what is overdue, also where the failure began before this process did.
 * A sale is judged from memory: by sums that are five seconds old at the most, and by what this process has sold since. Calls that are under way at the
 * same time are not counted yet.
 */
export function createClaimRisk({ store, network, limits, clock }: ClaimRiskOptions) {
  const most = MOST_AT_RISK * limits.threshold;
  /** What waited when the failure began; null while claims work. */
  let before: bigint | null = null;
  let sums = { unclaimed: 0n, overdue: 0n, readAtMs: 0 };
  /** What this process has sold since the sums were read, in base units. */
  let sold = 0n;
  let calmSinceMs: number | null = null;
  let reading: Promise<bigint> | null = null;

  async function readSums(): Promise<bigint> {
    const [soldBefore, readAtMs] = [sold, clock.nowMs()];
    const [unclaimed, overdue] = await Promise.all([
      store.totalsOverdue(network, Number.MAX_SAFE_INTEGER),
      store.totalsOverdue(network, overdueBefore(limits, readAtMs)),
    ]);
    sold -= soldBefore;
    sums = { unclaimed, overdue, readAtMs };
    if (before === null || unclaimed < before) before = unclaimed;
    return overdue;
  }

  /** Reads the sums while claims fail, and returns what is overdue. Rejects when the ledger cannot be read. */
  async function read(): Promise<bigint> {
    calmSinceMs = null;
    reading ??= readSums().finally(() => {
      reading = null;
    });
    return reading;
  }

  return {
    read,
    /** Before a sale while claims fail: waits for a read of the ledger where the trouble is new or the sums are too old. Rejects when it fails. */
    async look(): Promise<void> {
      const ageMs = clock.nowMs() - sums.readAtMs;
      if (before === null || calmSinceMs !== null || ageMs >= MOST_AGE_MS) await read();
      else if (ageMs >= FRESH_MS) void read().catch(() => {});
    },
    /** A voucher was sold at this price. */
    note(price: bigint): void {
      if (before !== null) sold += price;
    },
    /** Whether the sale of a call at this price would pass a bound. False while claims work. */
    isTooMuch: (price: bigint): boolean =>
      before !== null && (sums.overdue > most || sums.unclaimed + sold + price - before > most),
    /** No trouble is seen. The bounds begin anew once that has lasted. */
    calm(): void {
      if (before === null) return;
      calmSinceMs ??= clock.nowMs();
      if (clock.nowMs() - calmSinceMs >= CALM_MS) before = null;
    },
    /** A claim has worked. The bounds begin anew at once. */
    worked(): void {
      before = null;
    },
  };
}

export type ClaimRisk = ReturnType<typeof createClaimRisk>;
