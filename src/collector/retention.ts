import type { CollectorContext } from './context.ts';

const HOUR_SECONDS = 3600;
const DAY_SECONDS = 86_400;
/** How often the collector checks whether an hour is past the retention. */
const LOOK_EVERY_MS = 60_000;

/**
 * Creates the step that keeps the database bounded: it rolls up raw rows past the retention, one hour a step, and deletes old hours.
 * Returns true when it did something and may have more to do. The present is the time of the newest block stored whole, so that neither a wrong
 * clock nor a false head deletes anything.
 */
export function createRetention({ clock, limits, lookups, writes }: CollectorContext): () => boolean {
  let lookedMs = Number.NEGATIVE_INFINITY;
  return () => {
    if (clock.nowMs() - lookedMs < LOOK_EVERY_MS) return false;
    const newest = lookups.newestAt();
    if (newest === null) return false;
    const hour = Math.floor(newest / HOUR_SECONDS) * HOUR_SECONDS;
    if (writes.rollUpHour(hour - limits.retentionDays * DAY_SECONDS)) return true;
    writes.dropHours(hour - limits.hoursDays * DAY_SECONDS);
    lookedMs = clock.nowMs();
    return false;
  };
}
