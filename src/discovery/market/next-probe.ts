import { createHash } from 'node:crypto';

/** The state of a listing between two calls. Times in Unix milliseconds. */
export interface Standing {
  /** Failed calls in a row. */
  readonly failures: number;
  /** The time since which it is offline; null while it is online. */
  readonly offlineAt: number | null;
  /** The time of the next call. */
  readonly dueAt: number;
}

/** One or two failures may be a short disturbance. Three in a row count as an outage. */
const OFFLINE_AFTER = 3;
/** A listing that is offline for a week is dropped. */
const DROP_AFTER_MS = 7 * 86_400_000;
/** The longest pause between calls to an offline listing, in intervals. With hourly calls it is called four times a day, at different hours. */
const MAX_PAUSE = 6;

/**
 * The listing's next slot after a moment. Its place fixes one slot per interval.
 * So calls are spread evenly, however listings came in, and stay so over restarts.
 */
export function nextSlot(place: string, afterMs: number, intervalMs: number): number {
  const offsetMs = createHash('sha256').update(place).digest().readUInt32BE(0) % intervalMs;
  return afterMs + intervalMs - ((((afterMs - offsetMs) % intervalMs) + intervalMs) % intervalMs);
}

/** The state after a correctly answered call. */
export function afterAnswer(place: string, nowMs: number, intervalMs: number): Standing {
  return { failures: 0, offlineAt: null, dueAt: nextSlot(place, nowMs, intervalMs) };
}

/**
 * The state after a failed call. The listing is offline from the third failure in a row, and is then called less and less often.
 * Null when the listing is to be dropped. Only a failed call drops it, because time without calls proves nothing.
 */
export function afterFailure(place: string, before: Standing, nowMs: number, intervalMs: number): Standing | null {
  const failures = before.failures + 1;
  const offlineAt = before.offlineAt ?? (failures >= OFFLINE_AFTER ? nowMs : null);
  if (offlineAt !== null && nowMs - offlineAt >= DROP_AFTER_MS) return null;
  const pause = Math.min(2 ** Math.max(0, failures - OFFLINE_AFTER), MAX_PAUSE);
  return { failures, offlineAt, dueAt: nextSlot(place, nowMs + (pause - 1) * intervalMs, intervalMs) };
}
