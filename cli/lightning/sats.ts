import { formatUnits } from '../../src/lib/units.ts';

/** A satoshi is a thousand millisatoshis. */
const DECIMALS = 3;

/** Parses whole sats, as a person writes a limit, into millisatoshis. Null for anything else. */
export function parseSats(text: string): bigint | null {
  return /^\d{1,15}$/.test(text) ? BigInt(text) * 1000n : null;
}

/** Millisatoshis as sats with their name: 12500n is "12.5 sat". */
export function formatSats(msat: bigint): string {
  return `${formatUnits(msat, DECIMALS)} sat`;
}
