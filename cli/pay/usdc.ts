import { formatUnits } from '../../src/lib/units.ts';

/** USDC's ERC-20 interface has 6 decimals. */
const DECIMALS = 6;

/**
 * Converts decimal USDC (or USD, as prices are written) to base units, exactly. Null for anything else.
 * It uses no float, because a ceiling must not be rounded.
 */
export function parseUsdc(text: string): bigint | null {
  const match = /^(\d{1,12})(?:\.(\d{1,6}))?$/.exec(text);
  return match ? BigInt(`${match[1]}${(match[2] ?? '').padEnd(DECIMALS, '0')}`) : null;
}

/** Base units as decimal USDC with its name: 1000n is "0.001 USDC". */
export function formatUsdc(units: bigint): string {
  return `${formatUnits(units, DECIMALS)} USDC`;
}

/** Converts decimal USD to base units, rounded down, so that an amount is above the price exactly when it is above the result. Null for anything else. */
export function parseUsd(text: string): bigint | null {
  const match = /^(\d{1,12})(?:\.(\d{1,30}))?$/.exec(text);
  return match ? parseUsdc(`${match[1]}.${(match[2] ?? '').slice(0, DECIMALS).padEnd(1, '0')}`) : null;
}

/**
 * The longest that this buyer leaves an authorization open, in seconds, also where a seller allows a week. Whoever holds
 * it can charge it until then. A payment is presented for up to seven minutes, and a seller settles it within seconds.
 */
export const VALIDITY_SECONDS = 600;
