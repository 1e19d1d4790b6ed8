import { type Decimal, divide, multiply, parseDecimal } from '../../lib/units.ts';

/** The reference rates of one day: how many units of each currency one unit of `base` is worth. */
export interface Fixing {
  /** `YYYY-MM-DD` */
  readonly date: string;
  /** Decimal text as published; the base itself is in it with "1". */
  readonly rates: ReadonlyMap<string, string>;
}

/** A fixing with where and when it was read. */
export interface DatedFixing {
  readonly fixing: Fixing;
  /** The publisher of the rates, and the service that passed them on. */
  readonly source: string;
  readonly url: string;
  readonly retrievedAtMs: number;
}

/** The fixings of some days, with where and when they were read. */
export interface DatedFixings extends Omit<DatedFixing, 'fixing'> {
  /** Newest first. */
  readonly fixings: readonly Fixing[];
}

/** A source of fixings. */
export interface FixingSource {
  /** The last fixing on or before a calendar date; for null the newest one. Rejects with UpstreamFailed when there is none. */
  at(date: string | null): Promise<DatedFixing>;
  /** Every fixing from one calendar date to a later one, both included. Rejects with UpstreamFailed when they cannot be read as a whole. */
  between(from: string, to: string): Promise<DatedFixings>;
}

/** The euro's first day of trading; no fixing is older (https://www.ecb.europa.eu, "Euro foreign exchange reference rates"). */
export const FIRST_FIXING = '1999-01-04';

/** Digits of a cross rate. Published rates have five or six; ten let a buyer multiply a large amount without seeing the rounding. */
const RATE_PRECISION = { decimals: 0, significant: 10 };

/** A published rate: positive decimal text. */
export function isRate(text: string): boolean {
  return (parseDecimal(text)?.digits ?? 0n) > 0n;
}

/**
 * Units of `to` for one unit of `from`, as an exact fraction of the two published rates. Null when the day has no rate for one of them.
 * It is a fraction so that the caller rounds only once, after multiplying.
 */
export function crossRate({ rates }: Fixing, from: string, to: string): { dividend: Decimal; divisor: Decimal } | null {
  const [dividend, divisor] = [rates.get(to), rates.get(from)].map((text) => parseDecimal(text ?? ''));
  return dividend && divisor && divisor.digits > 0n ? { dividend, divisor } : null;
}

/** A cross rate at the digits in which rates are shown: ten significant ones, rounded half up. */
export function roundedRate({ dividend, divisor }: { dividend: Decimal; divisor: Decimal }): Decimal {
  return divide(dividend, divisor, RATE_PRECISION);
}

/** A rate's change from one fixing to a later one, as the exact fraction `part` of `whole`. Null when either has no rate for a currency. */
export function rateChange(earlier: Fixing, later: Fixing, from: string, to: string) {
  const [before, now] = [crossRate(earlier, from, to), crossRate(later, from, to)];
  if (!before || !now || before.dividend.digits === 0n) return null;
  // now / before - 1, as one fraction of whole numbers.
  const [top, bottom] = [multiply(now.dividend, before.divisor), multiply(now.divisor, before.dividend)];
  const scale = Math.max(top.scale, bottom.scale);
  const [grown, whole] = [top, bottom].map((value) => value.digits * 10n ** BigInt(scale - value.scale)) as [
    bigint,
    bigint,
  ];
  return { part: grown - whole, whole };
}
