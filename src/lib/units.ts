// Amounts as exact decimal text and arithmetic, never floats: buyers compute the on-chain amount from the text.

/** On Arc the native currency is USDC with 18 decimals (its ERC-20 contract has 6). */
export const NATIVE_DECIMALS = 18;

const GWEI_DECIMALS = 9;

/** Without trailing zeros: (1500000n, 6) is "1.5". */
export function formatUnits(value: bigint, decimals: number): string {
  const sign = value < 0n ? '-' : '';
  const digits = (value < 0n ? -value : value).toString().padStart(decimals + 1, '0');
  const whole = digits.slice(0, digits.length - decimals);
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, '');
  return fraction === '' ? `${sign}${whole}` : `${sign}${whole}.${fraction}`;
}

export function formatGwei(wei: bigint): string {
  return formatUnits(wei, GWEI_DECIMALS);
}

export function formatNative(wei: bigint): string {
  return formatUnits(wei, NATIVE_DECIMALS);
}

/** Of USDC's ERC-20, and the most with which an amount in USDC is shown. */
export const USDC_DECIMALS = 6;
export const MSAT_PER_SAT = 1000n;
/** Of millisatoshis that are shown in sats. */
export const MSAT_DECIMALS = 3;

/** 10^-`decimals` USDC with at most six decimals, rounded to the nearest; a half goes up. */
export function formatUsdc(amount: bigint, decimals: number): string {
  const scale = 10n ** BigInt(decimals - USDC_DECIMALS);
  return formatUnits((2n * amount + scale) / (2n * scale), USDC_DECIMALS);
}

/** Rounded up: who has that much can pay it, and no cost is shown as 0. */
export function formatCost(amount: bigint, decimals = NATIVE_DECIMALS): string {
  const scale = 10n ** BigInt(decimals - USDC_DECIMALS);
  return formatUnits((amount + scale - 1n) / scale, USDC_DECIMALS);
}

/** Not negative, exact: `digits` / 10^`scale`. */
export interface Decimal {
  readonly digits: bigint;
  readonly scale: number;
}

const FORM = /^(\d+)(?:\.(\d+))?$/;

/** Of plain decimal text (no sign, no exponent), never through a float. */
export function parseDecimal(text: string): Decimal | null {
  const match = FORM.exec(text);
  if (!match) return null;
  const [, whole = '', fraction = ''] = match;
  return { digits: BigInt(whole + fraction), scale: fraction.length };
}

/** Without needless zeros: 1.500 is "1.5". */
export function formatDecimal({ digits, scale }: Decimal): string {
  return formatUnits(digits, scale);
}

export function multiply(a: Decimal, b: Decimal): Decimal {
  return { digits: a.digits * b.digits, scale: a.scale + b.scale };
}

/** Rounded half up, once, to `decimals` places or `significant` digits, the finer one. */
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

/** Of a quotient's first digit: 0 for 1 to 9.99…, -1 for 0.1 to 0.99…, and 0 for zero. */
function exponentOf(numerator: bigint, denominator: bigint): number {
  if (numerator === 0n) return 0;
  const guess = numerator.toString().length - denominator.toString().length;
  const reached =
    guess >= 0 ? numerator >= denominator * 10n ** BigInt(guess) : numerator * 10n ** BigInt(-guess) >= denominator;
  return reached ? guess : guess - 1;
}
