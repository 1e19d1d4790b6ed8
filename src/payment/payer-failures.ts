import type { Clock } from '../lib/clock.ts';

const WINDOW_MS = 60_000;
/** Payers remembered at once; past it the oldest window is forgotten, so that made-up payers cannot fill memory. */
const MAX_PAYERS = 10_000;

/**
 * Counts a payer's uncharged failures a minute: a payment that is never charged must not drive work for ever.
 * Kept per process: it protects this process's work, not money.
 */
export function createPayerFailures(maxPerMinute: number, clock: Clock) {
  const windows = new Map<string, { since: number; failures: number }>();

  return {
    /** Seconds until the payer may try again; 0 when it may now. */
    retryAfterSeconds(payer: string): number {
      const window = windows.get(payer);
      if (maxPerMinute === 0 || !window || window.failures < maxPerMinute) return 0;
      return Math.max(0, Math.ceil((window.since + WINDOW_MS - clock.nowMs()) / 1000));
    },
    note(payer: string): void {
      const now = clock.nowMs();
      const window = windows.get(payer);
      if (window && window.since + WINDOW_MS > now) {
        window.failures++;
        return;
      }
      windows.delete(payer);
      windows.set(payer, { since: now, failures: 1 });
      const oldest = windows.keys().next().value;
      if (windows.size > MAX_PAYERS && oldest !== undefined) windows.delete(oldest);
    },
  };
}

export type PayerFailures = ReturnType<typeof createPayerFailures>;
