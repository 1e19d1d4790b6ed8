import { createHash } from 'node:crypto';

/** How a listing stands between two calls. Times in Unix milliseconds. */
export interface Standing {
  /** In a row. */
  readonly failures: number;
  /** Since when it is offline; null while it is online. */
  readonly offlineAt: number | null;
  /** When it is to be called next. */
  readonly dueAt: number;
}

/** One failure is the weather, three in a row are an outage. */
const OFFLINE_AFTER = 3;
/** Whoever is away for a week has left. */
const DROP_AFTER_MS = 7 * 86_400_000;
/** Intervals between the calls of one that stays away: a day has four of them, in any of which it may come back. */
const MAX_PAUSE = 6;

/**
 * The next slot of a listing after a moment: every listing has the same one in every interval, by its place, so that calls are spread evenly
 * however listings came in, and stay so over restarts.
 */
export function nextSlot(place: string, afterMs: number, intervalMs: number): number {
  const offsetMs = createHash('sha256').update(place).digest().readUInt32BE(0) % intervalMs;
  return afterMs + intervalMs - ((((afterMs - offsetMs) % intervalMs) + intervalMs) % intervalMs);
}

/** After a call that was answered as it should be. */
export function afterAnswer(place: string, nowMs: number, intervalMs: number): Standing {
  return { failures: 0, offlineAt: null, dueAt: nextSlot(place, nowMs, intervalMs) };
}

/**
 * After a call that failed: offline from the third in a row on, and called ever less often from then; null when the listing is to be
 * dropped, which only a call decides: time in which nobody called proves nothing.
 */
export function afterFailure(place: string, before: Standing, nowMs: number, intervalMs: number): Standing | null {
  const failures = before.failures + 1;
  const offlineAt = before.offlineAt ?? (failures >= OFFLINE_AFTER ? nowMs : null);
  if (offlineAt !== null && nowMs - offlineAt >= DROP_AFTER_MS) return null;
  const pause = Math.min(2 ** Math.max(0, failures - OFFLINE_AFTER), MAX_PAUSE);
  return { failures, offlineAt, dueAt: nextSlot(place, nowMs + (pause - 1) * intervalMs, intervalMs) };
}
