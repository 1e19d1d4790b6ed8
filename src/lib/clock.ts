import { randomBytes } from 'node:crypto';

// The clock, seconds and days, and ids in its order. Inside the service, times are Unix milliseconds.

export interface Clock {
  nowMs(): number;
  /** Resolves after `ms`; rejects with the signal's reason when it aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** Node's promise timers would make an error with a stack for each aborted sleep. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', stop);
        resolve();
      }, ms);
      const stop = () => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      signal?.addEventListener('abort', stop, { once: true });
    }),
};

/** The unit of `…At` in our answers. */
export function nowSeconds(clock: Clock): number {
  return Math.floor(clock.nowMs() / 1000);
}

/** Never negative: another machine's clock may be ahead. */
export function secondsSince(at: number, clock: Clock): number {
  return Math.max(nowSeconds(clock) - at, 0);
}

const FORM = /^\d{4}-\d{2}-\d{2}$/;
export const DAY_MS = 86_400_000;

/** `YYYY-MM-DD` of a day that exists: 2026-02-29 does not. */
export function isCalendarDate(text: string): boolean {
  return FORM.test(text) && isoDate(Date.parse(`${text}T00:00:00Z`)) === text;
}

/** The UTC day, `YYYY-MM-DD`; null for an invalid time. */
export function isoDate(ms: number): string | null {
  return Number.isFinite(ms) ? new Date(ms).toISOString().slice(0, 10) : null;
}

/** Throws for an invalid time. */
export function utcDay(ms: number): string {
  const day = isoDate(ms);
  if (day === null) throw new Error(`the clock gives no valid time: ${ms}`);
  return day;
}

export function daysBetween(from: string, to: string): number {
  return Math.round((Date.parse(`${to}T00:00:00Z`) - Date.parse(`${from}T00:00:00Z`)) / DAY_MS);
}

export function daysBefore(date: string, days: number): string {
  return utcDay(Date.parse(`${date}T00:00:00Z`) - days * DAY_MS);
}

/** Monday to Friday, holidays too, without the first day, with the last. */
export function weekdaysBetween(from: string, to: string): number {
  const days = Array.from({ length: daysBetween(from, to) }, (_, before) => Date.parse(daysBefore(to, before)));
  return days.filter((day) => ![0, 6].includes(new Date(day).getUTCDay())).length;
}

/** As npm, PyPI and OSV write times. */
const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i;

/** Whole Unix seconds of RFC 3339; null for any other text, and before 1970. */
export function secondsOf(text: unknown): number | null {
  if (typeof text !== 'string' || !RFC3339.test(text)) return null;
  const ms = Date.parse(text);
  return ms >= 0 ? Math.floor(ms / 1000) : null;
}

const RANDOM_BYTES = 8;
const IDS_A_DRAW = 64;

/** They sort by the time they were made. The process makes them, not a database, so that none is used twice. */
export function createIds(clock: Clock): () => string {
  const random = createRandomHex();
  let last = 0;
  let counter = 0;
  return () => {
    const now = Math.max(clock.nowMs(), last);
    counter = now === last ? counter + 1 : 0;
    last = now;
    const head = now.toString(16).padStart(12, '0') + counter.toString(16).padStart(4, '0');
    return head + random();
  };
}

/** Drawn for many ids at once: a draw costs as much as the rest of an id. */
function createRandomHex(): () => string {
  let drawn = '';
  return () => {
    if (drawn === '') drawn = randomBytes(RANDOM_BYTES * IDS_A_DRAW).toString('hex');
    const next = drawn.slice(0, 2 * RANDOM_BYTES);
    drawn = drawn.slice(2 * RANDOM_BYTES);
    return next;
  };
}
