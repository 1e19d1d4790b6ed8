/** A non-negative decimal number, exact: `digits` / 10^`scale`. */
export interface Decimal {
  readonly digits: bigint;
  readonly scale: number;
}

const FORM = /^(\d+)(?:\.(\d+))?$/;

/** Reads plain decimal text (no sign, no exponent), or null; never through a float. */
export function parseDecimal(text: string): Decimal | null {
  const match = FORM.exec(text);
  if (!match) return null;
  const [, whole = '', fraction = ''] = match;
  return { digits: BigInt(whole + fraction), scale: fraction.length };
}

/** Plain decimal text without needless zeros: 1.500 is "1.5". */
export function formatDecimal({ digits, scale }: Decimal): string {
  const text = digits.toString().padStart(scale + 1, '0');
  const whole = text.slice(0, text.length - scale);
  const fraction = text.slice(text.length - scale).replace(/0+$/, '');
  return fraction === '' ? whole : `${whole}.${fraction}`;
}

/** The product, exact. */
export function multiply(a: Decimal, b: Decimal): Decimal {
  return { digits: a.digits * b.digits, scale: a.scale + b.scale };
}

/**
 * The quotient rounded half up, once, to at least `decimals` places and at least `significant` digits, whichever is finer.
 * Throws RangeError when `divisor` is zero; the reader of a rate must refuse zero before.
 */
export function divide(
  dividend: Decimal,
  divisor: Decimal,
  precision: { decimals: number; significant: number },
): Decimal {
  if (divisor.digits === 0n) throw new RangeError('division by zero');
  const numerator = dividend.digits * 10n ** BigInt(divisor.scale);
  const denominator = divisor.digits * 10n ** BigInt(dividend.scale);
  const scale = Math.max(precision.decimals, precision.significant - 1 - exponentOf(numerator, denominator));
  const shifted = numerator * 10n ** BigInt(scale);
  return { digits: (2n * shifted + denominator) / (2n * denominator), scale };
}

/** The decimal exponent of a quotient's first digit: 0 for 1 to 9.99…, -1 for 0.1 to 0.99…, and 0 for zero. */
function exponentOf(numerator: bigint, denominator: bigint): number {
  if (numerator === 0n) return 0;
  const guess = numerator.toString().length - denominator.toString().length;
  const reached =
    guess >= 0 ? numerator >= denominator * 10n ** BigInt(guess) : numerator * 10n ** BigInt(-guess) >= denominator;
  return reached ? guess : guess - 1;
}
