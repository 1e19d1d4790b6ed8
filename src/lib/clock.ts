import { randomBytes } from 'node:crypto';

// Time: the clock, seconds and days of it, and ids in its order. Inside the service, times are Unix milliseconds.

export interface Clock {
  nowMs(): number;
  /** Resolves after `ms`; rejects with the signal's reason when it aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The machine's clock. Plain timers: Node's promise timers make an error with a stack for each aborted sleep. */
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

/** Whole Unix seconds: the unit of `…At` in our answers. Inside the service, `…At` is in milliseconds. */
export function nowSeconds(clock: Clock): number {
  return Math.floor(clock.nowMs() / 1000);
}

/** Whole seconds since a Unix time, never negative: another machine's clock may be ahead. */
export function secondsSince(at: number, clock: Clock): number {
  return Math.max(nowSeconds(clock) - at, 0);
}

const FORM = /^\d{4}-\d{2}-\d{2}$/;
export const DAY_MS = 86_400_000;

/** Whether the text is `YYYY-MM-DD` and names a day that exists: 2026-02-29 does not. */
export function isCalendarDate(text: string): boolean {
  return FORM.test(text) && isoDate(Date.parse(`${text}T00:00:00Z`)) === text;
}

/** The UTC day of a time in Unix milliseconds; null for an invalid time. */
export function isoDate(ms: number): string | null {
  return Number.isFinite(ms) ? new Date(ms).toISOString().slice(0, 10) : null;
}

/** The UTC day of a clock's time, `YYYY-MM-DD`. Throws for an invalid time. */
export function utcDay(ms: number): string {
  const day = isoDate(ms);
  if (day === null) throw new Error(`the clock gives no valid time: ${ms}`);
  return day;
}

/** Whole days from one `YYYY-MM-DD` to a later one. */
export function daysBetween(from: string, to: string): number {
  return Math.round((Date.parse(`${to}T00:00:00Z`) - Date.parse(`${from}T00:00:00Z`)) / DAY_MS);
}

/** The `YYYY-MM-DD` that is some days before another one. */
export function daysBefore(date: string, days: number): string {
  return utcDay(Date.parse(`${date}T00:00:00Z`) - days * DAY_MS);
}

/** Days from Monday to Friday, holidays too, after one `YYYY-MM-DD` up to and including a later one. */
export function weekdaysBetween(from: string, to: string): number {
  const days = Array.from({ length: daysBetween(from, to) }, (_, before) => Date.parse(daysBefore(to, before)));
  return days.filter((day) => ![0, 6].includes(new Date(day).getUTCDay())).length;
}

/** RFC 3339, as npm, PyPI and OSV write times. */
const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i;

/** Whole Unix seconds of an RFC 3339 time, or null when it is none or lies before 1970. */
export function secondsOf(text: unknown): number | null {
  if (typeof text !== 'string' || !RFC3339.test(text)) return null;
  const ms = Date.parse(text);
  return ms >= 0 ? Math.floor(ms / 1000) : null;
}

const RANDOM_BYTES = 8;
const IDS_A_DRAW = 64;

/** Ids that sort by the time they were made. The process makes them, not a database, so that none is used twice. */
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

/** Hex drawn for many ids at once, because a draw costs as much as the rest of an id. */
function createRandomHex(): () => string {
  let drawn = '';
  return () => {
    if (drawn === '') drawn = randomBytes(RANDOM_BYTES * IDS_A_DRAW).toString('hex');
    const next = drawn.slice(0, 2 * RANDOM_BYTES);
    drawn = drawn.slice(2 * RANDOM_BYTES);
    return next;
  };
}
