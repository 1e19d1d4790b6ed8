import { formatUnits } from '../../../src/lib/units.ts';

/** USDC's ERC-20 face has 6 decimals. */
const DECIMALS = 6;

/**
 * Decimal USDC (or USD, as prices are written) in base units, exactly; null for anything else.
 * No float takes part: a ceiling that rounds is no ceiling.
 */
export function parseUsdc(text: string): bigint | null {
  const match = /^(\d{1,12})(?:\.(\d{1,6}))?$/.exec(text);
  return match ? BigInt(`${match[1]}${(match[2] ?? '').padEnd(DECIMALS, '0')}`) : null;
}

/** Base units as decimal USDC with its name: 1000n is "0.001 USDC". */
export function formatUsdc(units: bigint): string {
  return `${formatUnits(units, DECIMALS)} USDC`;
}
