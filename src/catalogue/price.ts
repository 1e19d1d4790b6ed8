/** USDC's ERC-20 interface has 6 decimals (https://eips.ethereum.org/EIPS/eip-20 `decimals`). The service reads `decimals` again at start. */
const USDC_DECIMALS = 6;

/** An exact price, in USD and in USDC base units. */
export interface Price {
  /** Decimal string in USD, as published. */
  readonly usd: string;
  /** The same price in USDC base units (6 decimals): 0.001 USD is 1000n. */
  readonly units: bigint;
}

/** Converts a decimal USD string into a Price without floating point. Throws when the value is not exactly representable. */
export function priceFromUsd(usd: string): Price {
  const match = /^(\d{1,6})(?:\.(\d{1,6}))?$/.exec(usd);
  if (!match) throw new Error(`not a USD price with at most ${USDC_DECIMALS} decimals: ${usd}`);
  const units = BigInt(`${match[1]}${(match[2] ?? '').padEnd(USDC_DECIMALS, '0')}`);
  if (units === 0n) throw new Error('a price must be more than 0');
  return Object.freeze({ usd, units });
}
