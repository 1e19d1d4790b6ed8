const FORM = /^\d{4}-\d{2}-\d{2}$/;
const DAY_MS = 86_400_000;

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

/** Days from Monday to Friday after one `YYYY-MM-DD`, up to and including a later one. Holidays count as such days. */
export function weekdaysBetween(from: string, to: string): number {
  const days = Array.from({ length: daysBetween(from, to) }, (_, before) => Date.parse(daysBefore(to, before)));
  return days.filter((day) => ![0, 6].includes(new Date(day).getUTCDay())).length;
}
