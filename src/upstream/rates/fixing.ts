import { daysBefore } from '../../lib/clock.ts';
import { type Decimal, divide, multiply, parseDecimal } from '../../lib/units.ts';
import type { Retrieved } from '../client/client.ts';

export interface FixingSource {
  /** The last fixing on or before a calendar date; for null the newest. Rejects with UpstreamFailed for none. */
  at(date: string | null): Promise<DatedFixing>;
  /** Every fixing between two calendar dates, both included. Rejects with UpstreamFailed when not all can be read. */
  between(from: string, to: string): Promise<DatedFixings>;
}

/** The reference rates of one day: how many units of each currency one unit of `base` is worth. */
export interface Fixing {
  readonly date: string;
  /** Decimal text as published; the base itself is in it with "1". */
  readonly rates: ReadonlyMap<string, string>;
}

export interface DatedFixing extends Retrieved {
  readonly fixing: Fixing;
  readonly source: string;
}

export interface DatedFixings extends Omit<DatedFixing, 'fixing'> {
  readonly fixings: readonly Fixing[];
}

/** The euro's first day of trading; no fixing is older (https://www.ecb.europa.eu, Euro reference rates). */
export const FIRST_FIXING = '1999-01-04';

/** A published rate: positive decimal text. */
export function isRate(text: string): boolean {
  return (parseDecimal(text)?.digits ?? 0n) > 0n;
}

/** Units of `to` for one of `from`, as an exact fraction, so that the caller rounds only once. Null without a rate. */
export function crossRate({ rates }: Fixing, from: string, to: string): { dividend: Decimal; divisor: Decimal } | null {
  const [dividend, divisor] = [rates.get(to), rates.get(from)].map((text) => parseDecimal(text ?? ''));
  return dividend && divisor && divisor.digits > 0n ? { dividend, divisor } : null;
}

/** Digits of a cross rate. Published rates have five or six; with ten no rounding shows in a large amount. */
const RATE_PRECISION = { decimals: 0, significant: 10 };

/** A cross rate as it is shown, rounded half up. */
export function roundedRate({ dividend, divisor }: { dividend: Decimal; divisor: Decimal }): Decimal {
  return divide(dividend, divisor, RATE_PRECISION);
}

/** A rate's change to a later fixing, as the exact fraction `part` of `whole`. Null when either lacks a rate. */
export function rateChange(earlier: Fixing, later: Fixing, from: string, to: string) {
  const [before, now] = [crossRate(earlier, from, to), crossRate(later, from, to)];
  if (!before || !now || before.dividend.digits === 0n) return null;
  // now / before - 1, as one fraction of whole numbers.
  const [top, bottom] = [multiply(now.dividend, before.divisor), multiply(now.divisor, before.dividend)];
  const scale = Math.max(top.scale, bottom.scale);
  const atScale = (value: Decimal) => value.digits * 10n ** BigInt(scale - value.scale);
  const whole = atScale(bottom);
  return { part: atScale(top) - whole, whole };
}

/** Frankfurt's wall clock, by which the ECB publishes. */
const FRANKFURT = new Intl.DateTimeFormat('en-CA', {
  timeZone: 'Europe/Berlin',
  ...({ year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit' } as const),
  hourCycle: 'h23',
});

/** The ECB publishes about 16:00 on working days (https://www.ecb.europa.eu, Euro reference rates). */
const PUBLISHED_AT = '16:00';
/** Between these times a new file is asked for every five minutes; else once an hour, for a holiday or a late file. */
const LOOK_OUT = { from: '15:45', until: '17:30', everyMs: 5 * 60_000, elseMs: 3_600_000 };

export function frankfurtDate(nowMs: number): string {
  return wallClock(nowMs).date;
}

/** Whether a file whose newest day is `newest` and that was read at `readAtMs` should be read again now. */
export function isDue(newest: string, readAtMs: number, nowMs: number): boolean {
  if (newest >= newestExpected(nowMs)) return false;
  const { time } = wallClock(nowMs);
  const interval = time >= LOOK_OUT.from && time <= LOOK_OUT.until ? LOOK_OUT.everyMs : LOOK_OUT.elseMs;
  return nowMs - readAtMs >= interval;
}

/** The newest weekday whose file is due. On a holiday it is a day too new: one request an hour, and no wrong answer. */
function newestExpected(nowMs: number): string {
  const { date, time } = wallClock(nowMs);
  let day = time >= PUBLISHED_AT ? date : daysBefore(date, 1);
  while ([0, 6].includes(new Date(day).getUTCDay())) day = daysBefore(day, 1);
  return day;
}

function wallClock(nowMs: number): { date: string; time: string } {
  const parts = Object.fromEntries(FRANKFURT.formatToParts(nowMs).map(({ type, value }) => [type, value]));
  return { date: `${parts.year}-${parts.month}-${parts.day}`, time: `${parts.hour}:${parts.minute}` };
}
