/** Decimals of the chain's native currency: on Arc that is USDC with 18 (its ERC-20 contract has 6). */
export const NATIVE_DECIMALS = 18;

/** A gwei is 10^9 wei, the unit in which base fees are published. */
const GWEI_DECIMALS = 9;

/**
 * The exact decimal string of `value` base units, without trailing zeros: (1500000n, 6) is "1.5".
 * Money is never a float, so a buyer can compute the exact on-chain amount from the text.
 */
export function formatUnits(value: bigint, decimals: number): string {
  const sign = value < 0n ? '-' : '';
  const digits = (value < 0n ? -value : value).toString().padStart(decimals + 1, '0');
  const whole = digits.slice(0, digits.length - decimals);
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, '');
  return fraction === '' ? `${sign}${whole}` : `${sign}${whole}.${fraction}`;
}

/** Wei as an exact decimal string in gwei. */
export function formatGwei(wei: bigint): string {
  return formatUnits(wei, GWEI_DECIMALS);
}

/** Base units of the native currency (18 decimals) as an exact decimal string; on Arc that is an amount of USDC. */
export function formatNative(wei: bigint): string {
  return formatUnits(wei, NATIVE_DECIMALS);
}

/** Decimals of USDC's ERC-20 interface, and the most that an amount in USDC is shown with. */
export const USDC_DECIMALS = 6;
/** Millisatoshis of a satoshi. */
export const MSAT_PER_SAT = 1000n;

/** An amount in 10^-`decimals` USDC with at most six decimals, rounded to the nearest; a half goes up. */
export function formatUsdc(amount: bigint, decimals: number): string {
  const scale = 10n ** BigInt(decimals - USDC_DECIMALS);
  return formatUnits((2n * amount + scale) / (2n * scale), USDC_DECIMALS);
}

/** The same of a cost, rounded up: who has that much can pay it, and what costs something is never shown as 0. */
export function formatCost(amount: bigint, decimals = NATIVE_DECIMALS): string {
  const scale = 10n ** BigInt(decimals - USDC_DECIMALS);
  return formatUnits((amount + scale - 1n) / scale, USDC_DECIMALS);
}
