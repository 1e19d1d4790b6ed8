import { type Decimal, formatDecimal, parseDecimal } from '../../lib/units.ts';

/** How far two prices may be apart, in percent of the lower one. */
const AGREE_PERCENT = 2n;

/**
 * One exact rate from several exchanges' rates (positive decimals): the median of three, or the mean of two that are within 2 % of each other; null
 * otherwise. The median of three tolerates one wrong rate. Of two that differ, it is unknown which one is wrong.
 */
export function agreedRate(rates: readonly string[]): string | null {
  const [low, middle, high] = inOrder(rates);
  if (low === undefined || middle === undefined) return null;
  if (high !== undefined) return formatDecimal(middle);
  if (middle.digits * 100n > low.digits * (100n + AGREE_PERCENT)) return null;
  // Half of a decimal is five times it, one place on.
  return formatDecimal({ digits: (low.digits + middle.digits) * 5n, scale: low.scale + 1 });
}

/** The lowest first, all at one scale. */
function inOrder(rates: readonly string[]): Decimal[] {
  const parsed = rates.map((text) => parseDecimal(text) ?? { digits: 0n, scale: 0 });
  const scale = Math.max(...parsed.map((rate) => rate.scale));
  const aligned = parsed.map((rate) => ({ digits: rate.digits * 10n ** BigInt(scale - rate.scale), scale }));
  return aligned.sort((a, b) => (a.digits < b.digits ? -1 : Number(a.digits > b.digits)));
}
