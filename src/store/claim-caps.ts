import { daysBefore } from '../lib/clock.ts';
import { type ClaimAccount, KNOWN_DAYS, KNOWN_WINDOW_DAYS } from './ports/lightning.ts';

const DAY_MS = 86_400_000;

/**
 * Condition of SQL over a payee's rows of the days that count, grouped: it is known.
 * A client's hash is the same on all days of one payee.
 */
export const KNOWN = `count(*) >= ${KNOWN_DAYS} AND (max(other_clients) > 0 OR count(DISTINCT client) > 1)`;

/**
 * The values of a claim's caps in SQL, for both databases. `since` is the first day that counts towards being known.
 */
export function capValues({ day, dailyCap, clientCap, payeeCap, openCap }: ClaimAccount) {
  return { day, since: daysBefore(day, KNOWN_WINDOW_DAYS), dailyCap, clientCap, payeeCap, openCap };
}

/** A client's row is read on its own day only. It is kept two days longer, so that clock differences do not matter. */
export const CLIENT_DAYS_MS = 2 * DAY_MS;
/** A payee's day is read for as long as it can make the payee known, and a day longer for the same reason. */
export const PAYEE_DAYS_MS = (KNOWN_WINDOW_DAYS + 1) * DAY_MS;
/**
 * The most rows that one step of `prune` deletes, so that no commit lasts long, which on SQLite blocks the event loop.
 */
export const PRUNE_CHUNK = 100;
